"""Checkpoints in a bucket of an S3-compatible object store."""

import os
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from determined.storage.bucket import Bucket
from determined.storage.bucket_storage import BucketStorageManager

if TYPE_CHECKING:
    from minio import Minio
    from minio.credentials.providers import Provider

_AWS = "https://s3.amazonaws.com"
_REGION_ELSEWHERE = "us-east-1"


class S3StorageManager(BucketStorageManager):
    """Stores the files of a checkpoint as objects `[prefix/]<storage id>/<relative path>`.

    Without keys, the usual AWS and MinIO environment variables, files and roles are used.
    """

    TYPE = "s3"
    _UNSENT = ("_client", "_provider")

    def __init__(
        self,
        bucket: str,
        access_key: str | None = None,
        secret_key: str | None = None,
        endpoint_url: str | None = None,
        prefix: str | None = None,
        temp_dir: str | None = None,
    ) -> None:
        if not bucket:
            raise ValueError("an S3 storage needs the name of a bucket")
        self._bucket = bucket
        self._keys = (access_key or None, secret_key or None)
        self._endpoint_url = endpoint_url or os.environ.get("AWS_ENDPOINT_URL") or _AWS
        super().__init__(prefix, temp_dir)

    def __repr__(self) -> str:
        return f"s3://{self._bucket}/{self._prefix} at {self._endpoint_url}"

    @cached_property
    def _client(self) -> "Minio":
        from determined.storage import s3_bucket

        url = urlparse(self._endpoint_url)
        if url.scheme not in ("http", "https") or not url.netloc or url.path.strip("/"):
            raise ValueError(
                f"checkpoint_storage.endpoint_url must be http://host[:port] or https://host[:port], "
                f"not {self._endpoint_url!r}"
            )
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if not region and self._endpoint_url != _AWS:
            # Other stores accept any region. Without one, the client would ask the store for it first.
            region = _REGION_ELSEWHERE
        try:
            return s3_bucket.connect(url.netloc, url.scheme == "https", self._provider, region)
        except ValueError as e:
            raise ValueError(f"checkpoint_storage.endpoint_url {self._endpoint_url!r}: {e}") from e

    @cached_property
    def _provider(self) -> "Provider":
        from determined.storage import s3_bucket

        return s3_bucket.provider(self._keys)

    def _connect(self) -> Bucket:
        from determined.storage.s3_bucket import S3Bucket

        return S3Bucket(self._client, self._bucket, self._provider)

    def _client_errors(self) -> tuple[type[Exception], ...]:
        from minio.error import MinioException
        from urllib3.exceptions import HTTPError

        return MinioException, HTTPError
