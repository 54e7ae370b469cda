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
ROOM = 256 << 20
"""Free memory in bytes that is required: a batch may hold several messages of the maximum size."""
LOOK_EVERY_S = 0.5


class BatchStaging:
    """Maintains the staging links of one broker while its supervisor runs."""

    def __init__(self, store: Path, memory: Path = MEMORY) -> None:
        """`store` is where the broker stores the log."""
        self._store = store
        self._memory = memory

    async def keep(self) -> None:
        """Check periodically until cancelled, because the broker recreates the folder when it starts."""
        self.sweep()
        while True:
            self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    def look(self) -> None:
        """Create missing links, or remove them if memory is short. Never touches a folder in use."""
        roomy = self._has_room()
        for link in self._links():
            with contextlib.suppress(OSError):
                if roomy:
                    self._lead_to_memory(link)
                elif link.is_symlink():
                    link.unlink()

    def clear(self) -> None:
        """Remove everything from memory, after the broker has ended."""
        for link in self._links():
            with contextlib.suppress(OSError):
                if link.is_symlink():
                    link.unlink()
                _remove(self._place(link))

    def sweep(self) -> None:
        """Remove folders left by killed supervisors whose logs are gone."""
        for place in self._memory.glob(f"{_prefix()}*"):
            if not (place / LOG).exists():
                with contextlib.suppress(OSError):
                    _remove(place)

    def _links(self) -> list[Path]:
        streams = self._store.glob(f"jetstream/*/streams/{subjects.CONTROL}")
        return [stream / NAME for stream in streams]

    def _has_room(self) -> bool:
        try:
            return space_at(self._memory).free >= ROOM and os.access(self._memory, os.W_OK)
        except OSError:
            return False

    def _place(self, link: Path) -> Path:
        """Return the in-memory folder.

        Its name is stable, so a killed supervisor leaves nothing permanently.
        """
        name = hashlib.sha256(os.fsencode(link.absolute())).hexdigest()[:24]
        return self._memory / f"{_prefix()}{name}"

    def _lead_to_memory(self, link: Path) -> None:
        place = self._place(link)
        # It may have been removed from shared memory, for example when the user logged out.
        place.mkdir(mode=0o700, exist_ok=True)
        if not _is_ours(place):
            # Any user can create a folder there; never write to one created by another user.
            link.unlink()
            return
        if not (place / LOG).is_symlink():
            (place / LOG).symlink_to(link.parent.absolute())
        (place / NAME).mkdir(exist_ok=True)
        if not link.is_symlink():
            if link.is_dir():
                # Raises OSError while a batch is in it; try again later.
                link.rmdir()
            link.symlink_to(place / NAME)


def _prefix() -> str:
    return f"{PREFIX}{os.getuid()}-"


def _remove(place: Path) -> None:
    if _is_ours(place):
        shutil.rmtree(place)


def _is_ours(place: Path) -> bool:
    try:
        status = place.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
