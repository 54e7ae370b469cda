"""What transfers need from an object store. Each kind of store implements `Bucket`."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from determined.storage.checksums import SummedReader
from determined.storage.listing import Resources


class StoreError(Exception):
    """The store did not return what was requested."""


class Broken(StoreError):
    """The connection failed or the store is busy. Worth a retry."""


class Origin(NamedTuple):
    """Identifies the content of an object that bytes belong to, as far as the store reports it."""

    size: int | None
    """Total size of the object in bytes."""
    etag: str
    """Changes with the content; empty if the store has none."""


class Body(Protocol):
    """The body of a response."""

    origin: Origin
    """The object content it belongs to."""

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer as far as possible; returns 0 at the end. Raises `Broken`."""


class Streams(Protocol):
    """GET requests for the objects of a bucket. Safe to use from several threads."""

    def get(self, key: str, offset: int, length: int) -> AbstractContextManager[Body]:
        """Request a range of an object. Raises `StoreError`."""

    def close(self) -> None:
        """Close all idle connections."""


class Bucket(Protocol):
    """The objects of a bucket. Safe for several threads. Raises `StoreError` or errors of its client."""

    def sizes(self, prefix: str) -> Resources:
        """Return the sizes in bytes of all objects below a prefix that ends in `/`, by key."""

    def read(self, key: str) -> bytes:
        """Return the content of a small object."""

    def put(self, key: str, content: SummedReader, size_bytes: int, part_size_bytes: int) -> None:
        """Store an object, in parts if it is larger than one. After a failure there is no object."""

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects. Missing ones are not an error. Raises OSError naming one that remains."""

    def streams(self) -> Streams:
        """Return a reader for ranges of objects; the caller closes it."""
