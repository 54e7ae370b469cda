"""Makes the broker stage batches in memory.

nats-server creates a separate file store for each atomic batch, flushed like a stream, and removes it once
the batch is in the stream. This is most of the cost of a batch and provides no durability: a batch counts
only when it is in the stream, which is flushed before the ack, and staged data is discarded when the broker
starts. The broker has no setting for the staging folder, but follows a symbolic link (`docs/decisions/0063`).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import stat
from pathlib import Path

from det_contracts import subjects
from services.kit.disk_space import space_at

MEMORY = Path("/dev/shm")  # noqa: S108 - nothing there is used that others could have made
PREFIX = "steadfast-batches-"
NAME = "batches"
"""nats-server's name for the staging folder, beside a stream's messages."""
LOG = "log"
"""Name of the link in each in-memory folder to the stream whose batches it stages."""
REQUIRED_FREE_BYTES = 256 << 20
"""Free memory in bytes that is required: a batch may hold several messages of the maximum size."""
POLL_EVERY_S = 0.5


class BatchStaging:
    """Maintains the staging links of one broker while its supervisor runs."""

    def __init__(self, store: Path, memory: Path = MEMORY) -> None:
        """`store` is where the broker stores the log."""
        self._store = store
        self._memory = memory

    async def run(self) -> None:
        """Check periodically until cancelled, because the broker recreates the folder when it starts."""
        self.sweep()
        while True:
            self.update_links()
            await asyncio.sleep(POLL_EVERY_S)

    def update_links(self) -> None:
        """Create missing links, or remove them if memory is short. Never touches a folder in use."""
        has_room = self._has_room()
        for link in self._links():
            with contextlib.suppress(OSError):
                if has_room:
                    self._link_to_memory(link)
                elif link.is_symlink():
                    link.unlink()

    def clear(self) -> None:
        """Remove everything from memory, after the broker has ended."""
        for link in self._links():
            with contextlib.suppress(OSError):
                if link.is_symlink():
                    link.unlink()
                _remove(self._memory_folder(link))

    def sweep(self) -> None:
        """Remove folders left by killed supervisors whose logs are gone."""
        for folder in self._memory.glob(f"{_prefix()}*"):
            # `exists` follows the link, so this is true once the log it leads to is gone.
            if not (folder / LOG).exists():
                with contextlib.suppress(OSError):
                    _remove(folder)

    def _links(self) -> list[Path]:
        streams = self._store.glob(f"jetstream/*/streams/{subjects.CONTROL}")
        return [stream / NAME for stream in streams]

    def _has_room(self) -> bool:
        try:
            return space_at(self._memory).free >= REQUIRED_FREE_BYTES and os.access(self._memory, os.W_OK)
        except OSError:
            return False

    def _memory_folder(self, link: Path) -> Path:
        """Return the in-memory folder.

        Its name is stable, so a killed supervisor leaves nothing permanently.
        """
        name = hashlib.sha256(os.fsencode(link.absolute())).hexdigest()[:24]
        return self._memory / f"{_prefix()}{name}"

    def _link_to_memory(self, link: Path) -> None:
        folder = self._memory_folder(link)
        # It may have been removed from shared memory, for example when the user logged out.
        folder.mkdir(mode=0o700, exist_ok=True)
        if not _is_ours(folder):
            # Any user can create a folder there; never write to one created by another user.
            link.unlink()
            return
        if not (folder / LOG).is_symlink():
            (folder / LOG).symlink_to(link.parent.absolute())
        # Before the link: the broker must never find one that leads nowhere.
        (folder / NAME).mkdir(exist_ok=True)
        if not link.is_symlink():
            if link.is_dir():
                # Raises OSError while a batch is in it; try again later.
                link.rmdir()
            link.symlink_to(folder / NAME)


def _prefix() -> str:
    return f"{PREFIX}{os.getuid()}-"


def _remove(folder: Path) -> None:
    if _is_ours(folder):
        shutil.rmtree(folder)


def _is_ours(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
