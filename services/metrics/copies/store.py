"""The form of a copy: objects named by their SHA-256, of which one, the manifest, names all others."""

from __future__ import annotations

import hashlib
import io
import time

import msgspec
import zstandard

from det_contracts import subjects
from services.kit import blobs
from services.kit.blobs import BlobMissing, BlobStore
from services.kit.log import Log
from services.kit.log_range import read_range
from services.kit.settings import BadSettings
from services.metrics.copies.pages import Rows
from services.metrics.settings import MetricsSettings

FORM = 1
LEVEL = 1
"""Compression level. What is large is compressed already."""
TRIES = 5
RETRY_S = 1.0
_compress = zstandard.ZstdCompressor(LEVEL).compress


class BadCopy(Exception):
    """An object of a copy is missing, damaged, or not what its name says; the text names it."""


class PageEntry(msgspec.Struct, frozen=True, array_like=True):
    """A page in a manifest."""

    digest: str
    """Of what it holds (`pages.Page`)."""
    key: str
    """The name of its object."""
    size: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a copy consists of."""

    form: int = FORM
    owner: str
    schema: str
    """The revision of the tables that it was taken from."""
    before: str
    at: float
    """When it was begun, in seconds since the epoch."""
    positions: dict[str, int]
    pages: list[PageEntry]

    @property
    def keys(self) -> set[str]:
        """The names of the objects of all pages."""
        return {page.key for page in self.pages}

    @property
    def size(self) -> int:
        """Size of all pages in bytes."""
        return sum(page.size for page in self.pages)


class _StoredPage(msgspec.Struct, frozen=True, array_like=True):
    before: str
    content: list[Rows]


_encode_page = msgspec.msgpack.Encoder().encode
_pages = msgspec.msgpack.Decoder(_StoredPage)
_manifests = msgspec.json.Decoder(Manifest)


class CopyStore:
    """The objects of one process's copies. Blocking: use it in a thread. Raises OSError if storage fails."""

    def __init__(self, store: BlobStore) -> None:
        self._blobs = store

    def __repr__(self) -> str:
        return repr(self._blobs)

    def put_page(self, content: list[Rows], before: str) -> tuple[str, int]:
        """Store a page; returns its name and size.

        `before` becomes part of it: two copies after different ones share no name, so that what is
        removed after one copy is never what another has just stored.
        """
        packed = _compress(_encode_page(_StoredPage(before, content)))
        return self._put(packed), len(packed)

    def put_manifest(self, manifest: Manifest) -> str:
        """Store a manifest; returns its name."""
        return self._put(_compress(msgspec.json.encode(manifest)))

    def page(self, key: str) -> list[Rows]:
        """Read a page. Raises `BadCopy`."""
        try:
            return _pages.decode(self._get(key, "page")).content
        except msgspec.MsgspecError as error:
            raise BadCopy(f"the object {key} in {self!r} is no page of a copy: {error}") from error

    def manifest(self, key: str, owner: str) -> Manifest:
        """Read the manifest of an owner's copy. Raises `BadCopy`."""
        try:
            manifest = _manifests.decode(self._get(key, "manifest"))
        except msgspec.MsgspecError as error:
            raise BadCopy(f"the object {key} in {self!r} is no manifest of a copy: {error}") from error
        if manifest.form != FORM:
            raise BadCopy(
                f"the copy {key} has form {manifest.form}, this version reads {FORM}: update Steadfast"
            )
        if manifest.owner != owner:
            raise BadCopy(f"the copy {key} in {self!r} is that of {manifest.owner}, not of {owner}")
        return manifest

    def keys(self) -> set[str]:
        """The names of all objects."""
        return self._blobs.keys()

    def delete(self, key: str) -> None:
        """Delete an object."""
        self._blobs.delete(key)

    def _put(self, packed: bytes) -> str:
        key = hashlib.sha256(packed).hexdigest()
        self._blobs.put(key, io.BytesIO(packed))
        return key

    def _get(self, key: str, what: str) -> bytes:
        packed = self._read(key, what)
        if hashlib.sha256(packed).hexdigest() != key:
            raise BadCopy(f"the {what} {key} in {self!r} is damaged, or another object has its name")
        return zstandard.ZstdDecompressor().decompress(packed)

    def _read(self, key: str, what: str) -> bytes:
        # A copy of many gigabytes is read in one transaction, which one lost connection must not end.
        for attempt in range(TRIES):
            try:
                with self._blobs.open(key) as file:
                    return file.read()
            except BlobMissing as error:
                raise BadCopy(f"the {what} of the copy is missing: {error}") from error
            except OSError:
                if attempt == TRIES - 1:
                    raise
                time.sleep(RETRY_S)
        raise AssertionError


async def store_of(settings: MetricsSettings, owner: str, journal: Log) -> CopyStore | None:
    """Return where an owner's copies lie; None if nowhere, or if the log is empty. Raises `BadSettings`."""
    if not settings.metrics_store:
        return None
    log_id = await _identify(journal)
    if not log_id:
        return None
    # Apart from those of other processes, and of other clusters that were given the same place: what no copy
    # of this log refers to is deleted.
    return CopyStore(_connect(settings, f"{settings.metrics_store.rstrip('/')}/{owner}-{log_id}"))


def check_store(settings: MetricsSettings) -> None:
    """Raise `BadSettings` if the setting names no place where copies can lie."""
    if settings.metrics_store:
        _connect(settings, settings.metrics_store)


def _connect(settings: MetricsSettings, location: str) -> BlobStore:
    try:
        return blobs.connect(
            location,
            endpoint_url=settings.s3_endpoint_url,
            access_key=settings.s3_access_key,
            secret_key=settings.s3_secret_key,
        )
    except ValueError as error:
        raise BadSettings(f"STEADFAST_METRICS_STORE: {error}") from error


async def _identify(journal: Log) -> str:
    """A name for the log, made of its first event; empty if it has none."""
    events = await read_range(journal, subjects.CONTROL, before=2)
    return hashlib.sha256(events[0].body).hexdigest()[:12] if events else ""
