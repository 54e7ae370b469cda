"""Content-addressed archives that the gateway stores and workers read, in a directory or an S3 bucket.

A key is the SHA-256 of the content in lower-case hex, so storing something twice is harmless.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from minio import Minio

    from services.kit.addresses import Addresses

_KEY = re.compile(r"[0-9a-f]{64}")
_DRAFT = re.compile(r"\.[0-9a-f]{64}\.[0-9a-f]{32}")
DRAFT_AGE_S = 24 * 3600.0
"""Seconds since a draft was last written to, after which whoever wrote it was killed."""
_PART_BYTES = 16 << 20
_TIMEOUT_S = 10.0


class BlobMissing(Exception):
    """No blob has this key. The message names key and store."""


class BlobStore(Protocol):
    """Storage for archives.

    Blocking: call it in a thread. If the storage fails, raises an OSError that names it.
    """

    def put(self, key: str, file: BinaryIO) -> None:
        """Store the rest of `file` from its current position. Does nothing if the key exists."""

    def open(self, key: str, offset: int = 0) -> BinaryIO:
        """Open the content from a byte offset; the caller closes it. Raises `BlobMissing`."""

    def exists(self, key: str) -> bool:
        """Whether the key is stored completely."""

    def keys(self) -> set[str]:
        """The keys of everything that is stored completely."""

    def delete(self, key: str) -> None:
        """Delete a blob. Does nothing if there is none. Only for who stores under a prefix of its own."""


def connect(
    location: str, *, endpoint_url: str | None = None, access_key: str = "", secret_key: str = ""
) -> BlobStore:
    """Return the store at an absolute directory or at `s3://bucket[/prefix]`.

    Raises ValueError for any other location. Without keys, the usual AWS and MinIO variables, files and roles
    are used.
    """
    url = urlsplit(location)
    if url.scheme == "s3" and url.netloc:
        client = s3_client(endpoint_url, access_key, secret_key)
        return S3Blobs(client, url.netloc, url.path.strip("/"))
    if url.scheme or not Path(location).is_absolute():
        raise ValueError(f"'{location}' is neither an absolute directory nor s3://bucket[/prefix]")
    return DirectoryBlobs(Path(location))


def s3_client(
    endpoint_url: str | None,
    access_key: str | None,
    secret_key: str | None,
    addresses: Addresses | None = None,
    within_s: float = 0.0,
) -> Minio:
    """Return an S3 client, by default for Amazon, with timeouts of a few seconds and no redirects.

    With `addresses`, it connects to no others, and raises `AddressRefused`. With those or with `within_s`, no
    connection lasts longer than that many seconds (0: no limit), and it reads little of an error.
    """
    import urllib3
    from minio import Minio
    from minio.credentials.providers import (
        AWSConfigProvider,
        ChainedProvider,
        EnvAWSProvider,
        EnvMinioProvider,
        IamAwsProvider,
        Provider,
        StaticProvider,
    )

    from services.kit.tls import client_context

    url = urlsplit(endpoint_url or os.environ.get("AWS_ENDPOINT_URL") or "https://s3.amazonaws.com")
    if url.scheme not in ("http", "https") or not url.netloc or url.path.strip("/"):
        raise ValueError(f"an S3 endpoint is http://host[:port] or https://host[:port], not {endpoint_url}")
    keys: Provider = ChainedProvider(
        [EnvAWSProvider(), EnvMinioProvider(), AWSConfigProvider(), IamAwsProvider()]
    )
    if access_key and secret_key:
        keys = StaticProvider(access_key, secret_key)
    timeout = urllib3.Timeout(connect=_TIMEOUT_S / 2, read=_TIMEOUT_S)
    retries = urllib3.Retry(1, redirect=False)
    context = client_context(os.environ.get("STEADFAST_TLS_CA") or None)
    pool = urllib3.PoolManager(timeout=timeout, retries=retries, ssl_context=context)
    if addresses is not None or within_s:
        from services.kit.guarded_http import pool_manager

        pool = pool_manager(addresses, timeout, retries, within_s, context)
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return Minio(
        url.netloc,
        secure=url.scheme == "https",
        # Setting a region avoids a request that many S3-compatible stores refuse.
        region=region or (None if url.netloc.endswith("amazonaws.com") else "us-east-1"),
        credentials=keys,
        http_client=pool,
    )


def check_key(key: str) -> str:
    """Return the key unchanged. Raises ValueError if it is not a SHA-256."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"'{key}' is not the SHA-256 of anything")
    return key


class DirectoryBlobs:
    """One file per blob, visible only once it is complete and on disk."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._has_cleaned_up = False

    def __repr__(self) -> str:
        return f"directory {self._root}"

    def _path(self, key: str) -> Path:
        return self._root / check_key(key)[:2] / key

    def put(self, key: str, file: BinaryIO) -> None:
        path = self._path(key)
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if not self._has_cleaned_up:
            # Once for each process that stores anything: a killed one is followed by another.
            self._has_cleaned_up = True
            self._remove_old_drafts()
        draft = path.with_name(f".{key}.{uuid.uuid4().hex}")
        try:
            with draft.open("xb") as target:
                shutil.copyfileobj(file, target, 1 << 20)
                target.flush()
                os.fsync(target.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)

    def _remove_old_drafts(self) -> None:
        """Remove what killed processes have left. Others may be writing here, and go on."""
        for draft in self._root.glob("??/.*"):
            with contextlib.suppress(OSError):
                if _DRAFT.fullmatch(draft.name) and time.time() - draft.stat().st_mtime > DRAFT_AGE_S:
                    draft.unlink()

    def open(self, key: str, offset: int = 0) -> BinaryIO:
        try:
            file = self._path(key).open("rb")
        except FileNotFoundError:
            raise BlobMissing(f"there is no blob {key} in {self!r}") from None
        file.seek(offset)
        return file

    def exists(self, key: str) -> bool:
        return self._path(key).exists()

    def keys(self) -> set[str]:
        return {path.name for path in self._root.glob("??/*") if _KEY.fullmatch(path.name)}

    def delete(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)


class _Body:
    """The content of an object while it arrives. A connection that breaks off is an error of the storage."""

    def __init__(self, response: Any, store: str) -> None:
        self._response = response
        self._store = store

    def __enter__(self) -> _Body:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, size: int = -1) -> bytes:
        with translate_s3_errors(self._store):
            return cast(bytes, self._response.read(None if size < 0 else size))

    def close(self) -> None:
        self._response.close()


class S3Blobs:
    """One object per blob."""

    def __init__(self, client: Minio, bucket: str, prefix: str) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = prefix

    def __repr__(self) -> str:
        return f"s3://{posixpath.join(self._bucket, self._prefix)}"

    def _name(self, key: str) -> str:
        return posixpath.join(self._prefix, check_key(key))

    def put(self, key: str, file: BinaryIO) -> None:
        if self.exists(key):
            return
        start = file.tell()
        length = file.seek(0, os.SEEK_END) - start
        file.seek(start)
        with translate_s3_errors(f"the blob store {self!r}"):
            self._client.put_object(self._bucket, self._name(key), file, length, part_size=_PART_BYTES)

    def open(self, key: str, offset: int = 0) -> BinaryIO:
        with translate_s3_errors(f"the blob store {self!r}"):
            try:
                body = self._client.get_object(self._bucket, self._name(key), offset)
                return cast(BinaryIO, _Body(body, f"the blob store {self!r}"))
            except Exception:
                # Some stores answer a GET for a missing object in ways that the client cannot parse.
                if not self.exists(key):
                    raise BlobMissing(f"there is no blob {key} in {self!r}") from None
                raise

    def exists(self, key: str) -> bool:
        with translate_s3_errors(f"the blob store {self!r}"):
            try:
                self._client.stat_object(self._bucket, self._name(key))
            except Exception as error:
                if getattr(error, "code", "") in ("NoSuchKey", "NoSuchObject"):
                    return False
                raise
        return True

    def keys(self) -> set[str]:
        prefix = posixpath.join(self._prefix, "")
        with translate_s3_errors(f"the blob store {self!r}"):
            stored = self._client.list_objects(self._bucket, prefix, recursive=True)
            names = [(item.object_name or "").removeprefix(prefix) for item in stored]
        return {name for name in names if _KEY.fullmatch(name)}

    def delete(self, key: str) -> None:
        with translate_s3_errors(f"the blob store {self!r}"):
            self._client.remove_object(self._bucket, self._name(key))


@contextlib.contextmanager
def translate_s3_errors(store: str) -> Iterator[None]:
    """Turn exceptions of the S3 client into an OSError that names the store and the reason."""
    from minio.error import MinioException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except (MinioException, HTTPError) as error:
        raise OSError(f"{store} refuses: {' '.join(str(error).split())}") from error


_SHOWN_CODES = {
    *("AccessDenied", "InvalidAccessKeyId", "InvalidBucketName", "NoSuchBucket", "NoSuchKey"),
    *("RequestTimeTooSkewed", "SignatureDoesNotMatch"),
}
"""Error codes that tell a user what to change."""


def describe_storage_error(error: Exception) -> str:
    """Describe a storage error to the user who named the store. Of its answer, only a known code is shown."""
    if isinstance(error, ValueError):
        return str(error)
    code = getattr(error, "code", "")
    return f"it answers {code}" if code in _SHOWN_CODES else "it does not answer as an S3 store does"
