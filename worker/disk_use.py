"""Ends runs whose folders take more of the disk than they may.

A file system's own quotas would stop a run at its limit, but a worker can rely on none. So it measures, and a
run that writes fast is beyond its limit for a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import os
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from worker import process
from worker.utilisation.sampling import processes_of

if TYPE_CHECKING:
    from worker.run import Run
    from worker.settings import WorkerSettings

EVERY_S = 2.0
SHARE = 20
"""Measuring takes at most one part in so many of the time, however many files there are."""
BLOCK = 512
LEAST_BYTES = 4096
"""What a file counts at least: empty ones use up the file system, too."""
OUTPUT = "spool"
"""Where the output of a run is, in its folder; it has a limit of its own."""


class TooDeep(Exception):
    """A folder has paths that are longer than a system call takes, so what is below cannot be measured."""


class Folders(Protocol):
    """Knows where tasks have their files."""

    def folder_of(self, run_dir: Path) -> Path:
        """The folder that a task may fill."""
        ...


async def watch(settings: WorkerSettings, folders: Folders, runs: Mapping[str, Run]) -> None:
    """Measure all runs again and again until cancelled, and end those that take too much."""
    limit = settings.worker_disk_mib << 20
    if not limit:
        return
    pause_s = EVERY_S
    while True:
        await asyncio.sleep(pause_s)
        began = time.monotonic()
        for run in list(runs.values()):
            if run.order.started_at and not (run.done.is_set() or run.order.exceeded or run.order.killed):
                reason = await asyncio.to_thread(excess, folders.folder_of(run.folder), run.folder, limit)
                if reason:
                    await run.end_as_failed(reason)
        pause_s = max(EVERY_S, SHARE * (time.monotonic() - began))


def excess(folder: Path, run_dir: Path, limit: int) -> str:
    """Why a run has to end; "" if it takes no more than `limit` bytes. Blocks."""
    named = f"it may take {limit >> 20:,} MiB of this worker's disk (STEADFAST_WORKER_DISK_MIB)"
    try:
        size = 0
        for more in _sizes(folder, _processes(run_dir)):
            size += more
            if size > limit:
                return f"{named}, and its folder has more"
    except TooDeep:
        return f"{named}, and its folders are nested too deeply to be measured"
    return ""


def _sizes(folder: Path, pids: Collection[int]) -> Iterator[int]:
    """What each file takes, in bytes."""
    try:
        device = folder.lstat().st_dev
    except OSError:
        return
    counted_inodes: set[int] = set()
    for status in itertools.chain(_within(folder, device), _deleted(pids, device)):
        # A file with several names, or with none that several processes have open, takes its place once.
        if status.st_nlink == 1 or stat.S_ISDIR(status.st_mode) or status.st_ino not in counted_inodes:
            yield max(status.st_blocks * BLOCK, LEAST_BYTES)
        if status.st_nlink != 1:
            counted_inodes.add(status.st_ino)


def _within(folder: Path, device: int) -> Iterator[os.stat_result]:
    """Everything in a folder on its file system. Raises `TooDeep`."""
    pending, output = [str(folder)], str(folder / OUTPUT)
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    # What goes meanwhile is none the less looked for: a run may delete as fast as it writes.
                    with contextlib.suppress(FileNotFoundError):
                        status = entry.stat(follow_symlinks=False)
                        if status.st_dev == device and entry.path != output:
                            yield status
                            pending += [entry.path] if stat.S_ISDIR(status.st_mode) else []
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise TooDeep from error


def _deleted(pids: Collection[int], device: int) -> Iterator[os.stat_result]:
    """Files that processes have open although they are deleted: they still take their place."""
    for pid in pids:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    status = entry.stat()
                    if status.st_dev == device and status.st_nlink == 0 and stat.S_ISREG(status.st_mode):
                        yield status


def _processes(run_dir: Path) -> set[int]:
    try:
        running = msgspec.json.decode((run_dir / "running.json").read_bytes(), type=process.Running)
    except (OSError, msgspec.MsgspecError):
        return set()
    return processes_of(running.shim.pid, running.command.pid) - {running.shim.pid}
