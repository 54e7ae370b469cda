"""A bucket of Google Cloud Storage or Azure, through obstore.

Imported on first use, because loading the client takes a tenth of a second.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import AzureStore, GCSStore

from det_contracts.object_stores import error_text, store_arguments
from determined.storage.bucket import Body, Broken, Origin, StoreError, Streams
from determined.storage.checksums import SummedReader
from determined.storage.listing import Resources
from determined.storage.transfer import MIB, PARALLEL_OBJECTS, PARALLEL_PARTS

if TYPE_CHECKING:
    from obstore import GetResult
    from obstore.store import ClientConfig, RetryConfig

_CHUNK_BYTES = MIB
_CLIENT: "ClientConfig" = {
    # Applies to a whole request: one part of an upload, or one range.
    "timeout": timedelta(minutes=5),
    "connect_timeout": timedelta(seconds=10),
    "pool_max_idle_per_host": str(2 * PARALLEL_OBJECTS),
    "allow_http": True,
}
_RETRIES: "RetryConfig" = {"max_retries": 4, "retry_timeout": timedelta(minutes=3)}
_MISSING = (NotFoundError, FileNotFoundError)


def connect(config: Mapping[str, Any]) -> "ObjectStoreBucket":
    """Return the bucket of a storage of type gcs or azure. Nothing is asked yet. Raises ValueError."""
    kind = GCSStore if config["type"] == "gcs" else AzureStore
    arguments = store_arguments(config, os.environ)
    try:
        return ObjectStoreBucket(kind(**arguments, client_options=_CLIENT, retry_config=_RETRIES))
    except BaseError as error:
        raise ValueError(
            f"a checkpoint_storage of type {config['type']} cannot be used: {error_text(error)}"
        ) from None


class ObjectStoreBucket:
    """Implements `Bucket` for every store that obstore knows."""

    def __init__(self, store: "GCSStore | AzureStore") -> None:
        self._store = store

    def sizes(self, prefix: str) -> Resources:
        with _translated(prefix):
            return {
                entry["path"]: entry["size"] for some in obstore.list(self._store, prefix) for entry in some
            }

    def read(self, key: str) -> bytes:
        with _translated(key):
            return bytes(obstore.get(self._store, key).bytes())

    def put(self, key: str, content: SummedReader, size_bytes: int, part_size_bytes: int) -> None:
        chunks = _chunks(content, size_bytes)
        with _translated(key):
            if size_bytes <= part_size_bytes:
                # Small objects in one request: uploading in parts takes several.
                obstore.put(self._store, key, b"".join(chunks), use_multipart=False)
            else:
                obstore.put(
                    self._store, key, chunks, chunk_size=part_size_bytes, max_concurrency=PARALLEL_PARTS
                )

    def delete(self, keys: Sequence[str]) -> None:
        with _translated("deletion"):
            try:
                obstore.delete(self._store, list(keys))
            except _MISSING:
                # Another process deletes as well. The store may have stopped at the first that is missing.
                for key in keys:
                    with contextlib.suppress(*_MISSING):
                        obstore.delete(self._store, key)

    def streams(self) -> Streams:
        return _Ranges(self._store)


class _Ranges:
    """Implements `Streams`. obstore keeps the connections."""

    def __init__(self, store: "GCSStore | AzureStore") -> None:
        self._store = store

    @contextlib.contextmanager
    def get(self, key: str, offset: int, length: int) -> Iterator[Body]:
        with _translated(f"object {key}"):
            response = obstore.get(self._store, key, options={"range": (offset, offset + length)})
        yield _Content(response)

    def close(self) -> None:
        """Do nothing."""


class _Content:
    """Implements `Body`."""

    def __init__(self, response: "GetResult") -> None:
        self.origin = Origin(response.meta["size"], response.meta["e_tag"] or "")
        self._chunks = iter(response.stream(min_chunk_size=_CHUNK_BYTES))
        self._left = memoryview(b"")

    def readinto(self, buffer: memoryview, /) -> int:
        if not self._left:
            try:
                self._left = memoryview(next(self._chunks, b""))
            except BaseError as error:
                raise Broken(error_text(error)) from None
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


def _chunks(content: SummedReader, size_bytes: int) -> Iterator[bytes]:
    """The content, exactly as long as it was when it was listed: a file may grow meanwhile."""
    while size_bytes and (chunk := content.read(min(size_bytes, _CHUNK_BYTES))):
        size_bytes -= len(chunk)
        yield chunk


@contextlib.contextmanager
def _translated(key: str) -> Iterator[None]:
    """Raise `StoreError` for what the store refuses."""
    try:
        yield
    except (BaseError, FileNotFoundError) as error:
        raise StoreError(f"{key}: {error_text(error)}") from None
