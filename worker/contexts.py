"""A cache of code archives, so that the next run of an experiment need not fetch them again."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from services.kit.blobs import BlobStore

MAX_ARCHIVES = 100
"""Number of most recently used archives to keep. Others are fetched again when needed."""
IN_USE_S = 3600.0
"""Archives used within this time are never removed, because they may be being unpacked, in seconds."""


class ContextCache:
    """The archives of one worker, in a folder of its own. Blocking and thread-safe."""

    def __init__(self, folder: Path, blobs: BlobStore, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._blobs = blobs
        self._clock = clock
        self._folder.mkdir(parents=True, exist_ok=True)

    def get(self, digest: str) -> Path:
        """The archive with this SHA-256, fetched if it is not cached. Raises `BlobMissing` or `OSError`."""
        archive = self._folder / f"{digest}.tar.gz"
        try:
            self._touch(archive)
        except FileNotFoundError:
            self._fetch(digest, archive)
            self._touch(archive)
            self._evict()
        return archive

    def _touch(self, archive: Path) -> None:
        os.utime(archive, (self._clock(), self._clock()))

    def _fetch(self, digest: str, archive: Path) -> None:
        part = archive.with_name(f"{archive.name}.{os.getpid()}-{threading.get_ident()}")
        try:
            with contextlib.closing(self._blobs.open(digest)) as source, part.open("wb") as target:
                shutil.copyfileobj(source, target)
                target.flush()
                # A file with this name is reused from now on: it must be complete even after a power loss.
                os.fsync(target.fileno())
            part.replace(archive)
        finally:
            part.unlink(missing_ok=True)

    def _evict(self) -> None:
        """Remove the least recently used archives, and partial files left by a killed worker."""
        by_last_use: list[tuple[float, Path]] = []
        for path in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                by_last_use.append((path.stat().st_mtime, path))
        by_last_use.sort(reverse=True)
        for index, (at, path) in enumerate(by_last_use):
            is_partial = path.suffix != ".gz"
            if (is_partial or index >= MAX_ARCHIVES) and at < self._clock() - IN_USE_S:
                path.unlink(missing_ok=True)
