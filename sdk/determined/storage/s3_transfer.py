"""Uploads many or large objects quickly and in bounded memory.

Imported on first use, because loading the client takes a tenth of a second. The client keeps whole parts in
memory, hence the explicit part size.
"""

import errno
import io
import os
import pathlib
import posixpath
import time
import uuid
from collections.abc import Iterable, Mapping
from functools import partial
from typing import BinaryIO, cast

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
from urllib3.exceptions import HTTPError

from determined.storage.checksums import Blocks, SummedReader, decode, encode
from determined.storage.listing import Resources
from determined.storage.parallel import run_all
from determined.storage.progress import Meter
from determined.storage.s3_answers import BUSY

MIB = 1 << 20
PART_SIZE_BYTES = 16 * MIB
PARALLEL_PARTS = 4
PARALLEL_OBJECTS = 8
_MOST_PARTS = 9_000


class _Search(ChainedProvider):
    def retrieve(self) -> Credentials:
        try:
            return super().retrieve()
        except (ValueError, HTTPError) as error:
            raise MinioException(
                f"no keys were found ({error}): give access_key and secret_key, "
                "or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            ) from error


def connect(endpoint: str, secure: bool, credentials: Provider, region: str | None) -> Minio:
    """Create a client without connecting. Raises FileNotFoundError if SSL_CERT_FILE does not exist."""
    trusted = os.environ.get("SSL_CERT_FILE") or certifi.where()
    if secure and not os.path.exists(trusted):
        raise FileNotFoundError(errno.ENOENT, "SSL_CERT_FILE names a file that does not exist", trusted)
    pool = urllib3.PoolManager(
        maxsize=2 * PARALLEL_OBJECTS,
        timeout=urllib3.Timeout(connect=10, read=300),
        retries=urllib3.Retry(total=4, backoff_factor=0.2, status_forcelist=BUSY),
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


def _part_size(size_bytes: int) -> int:
    """Return the part size: a multiple of 1 MiB that keeps the object below the store's limit on parts."""
    needed = -(-size_bytes // _MOST_PARTS)
    return max(PART_SIZE_BYTES, -(-needed // MIB) * MIB)


def upload(
    client: Minio, bucket: str, root: str, src: pathlib.Path, files: Resources, meter: Meter
) -> dict[str, Blocks]:
    """Upload `files` of the directory `src` under the key prefix `root`. Returns their checksums.

    At most 8 small files, and then 4 parts of one large file, are in memory at a time.
    """
    blocks: dict[str, Blocks] = {}

    def put(name: str) -> None:
        size = files[name]
        part_size = _part_size(size)
        with open(src / name, "rb") as file:
            reader = SummedReader(file, size, part_size, meter)
            client.put_object(
                bucket,
                posixpath.join(root, name),
                cast(BinaryIO, reader),
                size,
                part_size=part_size,
                num_parallel_uploads=PARALLEL_PARTS,
            )
        blocks[name] = reader.blocks()

    large = {name for name, size in files.items() if size > PART_SIZE_BYTES}
    small = [partial(put, name) for name in files if name not in large]
    run_all(small, min(PARALLEL_OBJECTS, len(small)))
    for name in sorted(large):
        put(name)
    return blocks


def keep_checksums(client: Minio, bucket: str, place: str, files: Mapping[str, Blocks]) -> None:
    """Store checksums under the key prefix `place`, next to those of other uploads."""
    content = encode(files)
    # Names sort by time, so the latest upload of a file wins.
    key = f"{place}{time.time_ns():020}-{uuid.uuid4().hex}.json"
    client.put_object(bucket, key, io.BytesIO(content), len(content))


def kept_checksums(client: Minio, bucket: str, place: str) -> dict[str, Blocks]:
    """Return the checksums below the key prefix `place`, by file.

    Files stored by other programs have none.
    """
    keys = sorted(str(o.object_name) for o in client.list_objects(bucket, prefix=place, recursive=True))
    blocks: dict[str, Blocks] = {}
    for key in keys:
        try:
            blocks |= decode(_content(client, bucket, key))
        except ValueError as error:
            raise OSError(
                f"the checksums in object {key} of bucket {bucket} are damaged ({error}); "
                "delete that object to do without them"
            ) from error
    return blocks


def _content(client: Minio, bucket: str, key: str) -> bytes:
    response = client.get_object(bucket, key)
    try:
        content: bytes = response.read()
        return content
    finally:
        response.close()
        response.release_conn()


def delete(client: Minio, bucket: str, root: str, names: Iterable[str]) -> None:
    """Delete the keys of `names` under `root`. Raises OSError naming the first that could not be deleted."""
    keys = [DeleteObject(posixpath.join(root, name)) for name in names]
    for error in client.remove_objects(bucket, keys):
        raise OSError(f"object {error.name} of bucket {bucket} cannot be deleted: {error.message}")


def delete_below(client: Minio, bucket: str, root: str) -> None:
    """Delete all keys under a prefix."""
    keys = [str(item.object_name) for item in client.list_objects(bucket, prefix=root, recursive=True)]
    delete(client, bucket, "", keys)
