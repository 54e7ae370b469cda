"""Archives of code that a worker keeps, so that the next run of an experiment need not fetch it again."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from services.kit.blobs import BlobStore

KEPT = 100
"""So many are kept, those that were used last; another one is fetched when it is wanted again."""
IN_USE_S = 3600.0
"""What was used less long ago stays in any case: somebody may be unpacking it."""


class Contexts:
    """The archives of one worker, in a folder of its own. Blocking; several threads may ask."""

    def __init__(self, folder: Path, blobs: BlobStore, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._blobs = blobs
        self._clock = clock
        self._folder.mkdir(parents=True, exist_ok=True)

    def get(self, digest: str) -> Path:
        """The archive of that SHA-256, fetched where it is not here; raises `BlobMissing` or OSError."""
        archive = self._folder / f"{digest}.tar.gz"
        try:
            self._note(archive)
        except FileNotFoundError:
            self._fetch(digest, archive)
            self._note(archive)
            self._forget()
        return archive

    def _note(self, archive: Path) -> None:
        os.utime(archive, (self._clock(), self._clock()))

    def _fetch(self, digest: str, archive: Path) -> None:
        part = archive.with_name(f"{archive.name}.{os.getpid()}-{threading.get_ident()}")
        try:
            with contextlib.closing(self._blobs.open(digest)) as source, part.open("wb") as target:
                shutil.copyfileobj(source, target)
                target.flush()
                # Whatever has its name is used again and again: it must be whole, also after a power loss.
                os.fsync(target.fileno())
            part.replace(archive)
        finally:
            part.unlink(missing_ok=True)

    def _forget(self) -> None:
        """Remove what was not used for longest, and parts that a killed worker has left."""
        used: list[tuple[float, Path]] = []
        for path in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                used.append((path.stat().st_mtime, path))
        used.sort(reverse=True)
        for place, (at, path) in enumerate(used):
            half = path.suffix != ".gz"
            if (half or place >= KEPT) and at < self._clock() - IN_USE_S:
                path.unlink(missing_ok=True)
