"""Packs the files of a request into one context archive.

Packing is deterministic: the same files give the same bytes, so a context sent twice is stored once.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import io
import mmap
import posixpath
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, cast

from det_contracts.context import Context
from det_contracts.problems import invalid
from services.rest_requests.bodies import ContextItem
from services.web.bodies import LIMIT_BYTES

FILE, DIRECTORY = 48, 53
PATH_KEY = b'"path"'
MEMORY_BYTES = 8 << 20
COMPRESSION_LEVEL = 1
"""Compression level. Code is small, and large files rarely compress well."""


MAX_FILES = 100_000
MAX_DEPTH = 200
"""Maximum depth of nested folders, since workers have to walk through them."""
MAX_PATH_LENGTH = 2000


class TooLarge(Exception):
    """The files of a context exceed what a request may carry."""


@contextmanager
def pack(items: Sequence[ContextItem]) -> Iterator[tuple[Context, BinaryIO]]:
    """Pack files into an archive; yield its identity and the archive as an open file. Blocking.

    Raises `Refused` (400) for invalid paths and contents, and `TooLarge` above 96 MiB.
    """
    with tempfile.SpooledTemporaryFile(MEMORY_BYTES) as spooled:
        file = cast(BinaryIO, spooled)
        with gzip.GzipFile(
            fileobj=file, mode="wb", compresslevel=COMPRESSION_LEVEL, mtime=0, filename=""
        ) as zipped:
            _write(items, zipped)
        size = file.tell()
        file.seek(0)
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
        file.seek(0)
        yield Context(digest.hexdigest(), size), file


def check_file_count(body: mmap.mmap) -> None:
    """Refuse a request with too many files before it is parsed into objects."""
    count, at = 0, body.find(PATH_KEY)
    while at >= 0:
        count += 1
        if count > MAX_FILES:
            raise invalid(f"the context contains more than {MAX_FILES} files; see .detignore")
        at = body.find(PATH_KEY, at + 1)


def _write(items: Sequence[ContextItem], target: gzip.GzipFile) -> None:
    total = 0
    names: set[str] = set()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        # Sorted, so that the same files give the same bytes in whatever order a client walks its folders.
        for item in sorted(items, key=lambda item: item.path):
            header = _header(item)
            # Of two entries with one name the later one would win, and the file list would show both.
            if header.name in names:
                raise invalid(f"the context contains '{item.path}' twice")
            names.add(header.name)
            content = _content(item) if header.isreg() else b""
            total += len(content)
            if total > LIMIT_BYTES:
                raise TooLarge(f"the context is larger than {LIMIT_BYTES} bytes; see .detignore")
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))


def _header(item: ContextItem) -> tarfile.TarInfo:
    name = posixpath.normpath(item.path)
    if not item.path or name.startswith(("/", "../")) or name in (".", "..") or "\0" in name:
        raise invalid(f"the context contains '{item.path}', which is outside of it")
    if name.count("/") >= MAX_DEPTH or len(name) > MAX_PATH_LENGTH:
        raise invalid(
            f"the context contains '{name[:80]}…', which is longer than {MAX_PATH_LENGTH} characters or lies "
            f"more than {MAX_DEPTH} folders deep"
        )
    if item.type not in (FILE, DIRECTORY):
        raise invalid(
            f"'{item.path}' in the context is neither a file ({FILE}) nor a directory ({DIRECTORY})"
        )
    header = tarfile.TarInfo(name)
    header.type = tarfile.DIRTYPE if item.type == DIRECTORY else tarfile.REGTYPE
    # Without the set-user-id bits: workers may unpack as root.
    header.mode = item.mode & 0o777 or (0o755 if item.type == DIRECTORY else 0o644)
    header.mtime = max(item.mtime, 0)
    return header


def _content(item: ContextItem) -> bytes:
    try:
        return base64.b64decode(item.content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid(f"the content of '{item.path}' in the context is not base64: {error}") from None
