"""Has the broker stage batches in memory.

nats-server makes a file store of its own for each atomic batch, flushed like a stream, and removes it once
the batch is in the stream. That is most of what a batch costs, and keeps nothing: a batch counts when it is
in the stream, which is flushed before the broker says so, and what is staged is thrown away when the broker
starts. The broker has no setting for the place, but follows a link (`docs/decisions/0063`).
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
"""What nats-server calls the folder, beside the messages of a stream."""
LOG = "log"
"""In each folder in memory, a link to the stream whose batches it holds."""
ROOM = 256 << 20
"""Bytes that must be free in memory: a batch may hold some of the largest messages."""
LOOK_EVERY_S = 0.5


class BatchStaging:
    """Keeps the place of one broker's batches for as long as its supervisor runs."""

    def __init__(self, store: Path, memory: Path = MEMORY) -> None:
        """`store` is where the broker keeps the log."""
        self._store = store
        self._memory = memory

    async def keep(self) -> None:
        """Look again and again, until cancelled: the broker makes the folder anew when it starts."""
        self.sweep()
        while True:
            self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    def look(self) -> None:
        """Put links where there are none; take them away where memory is short. Leaves what is in use."""
        roomy = self._has_room()
        for link in self._links():
            with contextlib.suppress(OSError):
                if roomy:
                    self._lead_to_memory(link)
                elif link.is_symlink():
                    link.unlink()

    def clear(self) -> None:
        """Leave nothing in memory; for when the broker has ended."""
        for link in self._links():
            with contextlib.suppress(OSError):
                if link.is_symlink():
                    link.unlink()
                _remove(self._place(link))

    def sweep(self) -> None:
        """Remove what supervisors left that were killed, of logs that are gone."""
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
        """The same each time, so that a supervisor that was killed leaves nothing for good."""
        name = hashlib.sha256(os.fsencode(link.absolute())).hexdigest()[:24]
        return self._memory / f"{_prefix()}{name}"

    def _lead_to_memory(self, link: Path) -> None:
        place = self._place(link)
        # Whoever looks after shared memory may have removed it, as when its user logs out.
        place.mkdir(mode=0o700, exist_ok=True)
        if not _is_ours(place):
            # Anybody may make a folder there: what another user made under this name is not written to.
            link.unlink()
            return
        if not (place / LOG).is_symlink():
            (place / LOG).symlink_to(link.parent.absolute())
        (place / NAME).mkdir(exist_ok=True)
        if not link.is_symlink():
            if link.is_dir():
                # An OSError where a batch is in it: then another time.
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
