"""A bucket of an S3-compatible store.

Imported on first use, because loading the client takes a tenth of a second.
"""

import errno
import os
from collections.abc import Sequence
from typing import Any, BinaryIO, cast

import certifi
import urllib3
from minio import Minio
from minio.credentials.credentials import Credentials
from minio.credentials.providers import (
    AWSConfigProvider,
    ChainedProvider,
    EnvAWSProvider,
    EnvMinioProvider,
    IamAwsProvider,
    Provider,
    StaticProvider,
)
from minio.deleteobjects import DeleteObject
from minio.error import MinioException
from urllib3.exceptions import HTTPError, ReadTimeoutError

from determined.storage.checksums import SummedReader
from determined.storage.listing import Resources
from determined.storage.s3_answers import BUSY
from determined.storage.s3_streams import SILENCE_S, Streams
from determined.storage.transfer import PARALLEL_OBJECTS, PARALLEL_PARTS


class _Search(ChainedProvider):
    def retrieve(self) -> Credentials:
        try:
            return super().retrieve()
        # minio raises plain ValueError and HTTPError here, which say nothing of where keys are looked for.
        except (ValueError, HTTPError) as error:
            raise MinioException(
                f"no keys were found ({error}): give access_key and secret_key, "
                "or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            ) from error


class _Retry(urllib3.Retry):
    """Asks a store that says nothing only once more: each time costs `SILENCE_S`."""

    def increment(self, *args: Any, **kwargs: Any) -> "_Retry":
        silent = isinstance(kwargs.get("error"), ReadTimeoutError)
        policy = self.new(total=min(int(self.total or 0), 1)) if silent else self
        return super(_Retry, policy).increment(*args, **kwargs)


def connect(endpoint: str, secure: bool, credentials: Provider, region: str | None) -> Minio:
    """Create a client without connecting. Raises FileNotFoundError if SSL_CERT_FILE does not exist."""
    trusted = os.environ.get("SSL_CERT_FILE") or certifi.where()
    if secure and not os.path.exists(trusted):
        raise FileNotFoundError(errno.ENOENT, "SSL_CERT_FILE names a file that does not exist", trusted)
    pool = urllib3.PoolManager(
        maxsize=2 * PARALLEL_OBJECTS,
        timeout=urllib3.Timeout(connect=10, read=SILENCE_S),
        retries=_Retry(total=4, backoff_factor=0.2, status_forcelist=BUSY),
        cert_reqs="CERT_REQUIRED",
        ca_certs=trusted,
    )
    return Minio(endpoint, credentials=credentials, secure=secure, region=region, http_client=pool)


def provider(keys: tuple[str | None, str | None]) -> Provider:
    """Return the source of credentials: the keys, or else environment variables, files and roles."""
    access, secret = keys
    if access and secret:
        return StaticProvider(access, secret)
    return _Search([EnvAWSProvider(), EnvMinioProvider(), AWSConfigProvider(), IamAwsProvider()])


class S3Bucket:
    """Implements `Bucket` with the store's client, and downloads with `Streams`."""

    def __init__(self, client: Minio, name: str, provider: Provider) -> None:
        """`provider` holds the credentials that the client uses."""
        self._client = client
        self._name = name
        self._provider = provider

    def sizes(self, prefix: str) -> Resources:
        objects = self._client.list_objects(self._name, prefix=prefix, recursive=True)
        return {str(o.object_name): int(o.size or 0) for o in objects}

    def read(self, key: str) -> bytes:
        response = self._client.get_object(self._name, key)
        try:
            content: bytes = response.read()
            return content
        finally:
            response.close()
            response.release_conn()

    def put(self, key: str, content: SummedReader, size_bytes: int, part_size_bytes: int) -> None:
        # The client keeps whole parts in memory.
        self._client.put_object(
            self._name,
            key,
            cast(BinaryIO, content),
            size_bytes,
            part_size=part_size_bytes,
            num_parallel_uploads=PARALLEL_PARTS,
        )

    def delete(self, keys: Sequence[str]) -> None:
        # Lazy: nothing is deleted unless this iterator is read.
        for error in self._client.remove_objects(self._name, [DeleteObject(key) for key in keys]):
            raise OSError(f"object {error.name} of bucket {self._name} cannot be deleted: {error.message}")

    def streams(self) -> Streams:
        return Streams(self._client, self._name, self._provider)
