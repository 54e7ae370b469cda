"""Processes that outlive whoever started them, each known by a folder.

A process is told from another one of the same number by when it began, and after a start of the machine by
that start. A worker holds a lock in its home, which names it: so one is found of which nothing was noted,
because whoever started it was killed at that moment.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from services.kit import host_processes
from services.kit.files import write_whole

FILE = "process.json"
HOME = "home"
LOCK = "lock"
"""Of a worker, in its home; see `worker.identity`."""


class Started(msgspec.Struct, frozen=True):
    """A process as it was started."""

    pid: int
    began: str
    """When, in the kernel's ticks since the machine was started."""
    boot: str
    """Of the machine: numbers of processes are given out anew after a start."""


def note(folder: Path, pid: int) -> None:
    """Keep that a process was started for a folder; raises OSError."""
    write_whole(folder / FILE, msgspec.json.encode(Started(pid, _began(pid), _boot())))


def noted(folder: Path) -> int:
    """The number of the process that was started last for a folder; 0 for none."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Started).pid
    except (OSError, msgspec.MsgspecError):
        return 0


def running(folder: Path) -> int:
    """The number of the process that runs for a folder; 0 where none does."""
    try:
        started = msgspec.json.decode((folder / FILE).read_bytes(), type=Started)
    except (OSError, msgspec.MsgspecError):
        return _holder(folder)
    same = started.boot == _boot() and bool(started.began) and _began(started.pid) == started.began
    return started.pid if same else _holder(folder)


def left_by(folder: Path) -> list[int]:
    """Processes that were started for something in a folder: a killed worker leaves scripts behind."""
    return [
        int(path.name)
        for path in Path("/proc").glob("[0-9]*")
        if int(path.name) != os.getpid() and _speaks_of(path, folder)
    ]


def _holder(folder: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        pid = int((folder / HOME / LOCK).read_text())
        if _began(pid) and _speaks_of(Path(f"/proc/{pid}"), folder / HOME):
            return pid
    return 0


def _speaks_of(process: Path, folder: Path) -> bool:
    try:
        said = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    except OSError:
        return False
    path = os.fsencode(folder)
    return any(mark in said for mark in (path + b"/", path + b"\0"))


def _began(pid: int) -> str:
    """Empty for one that is gone, or a zombie."""
    return str(host_processes.started(pid) or "")


def _boot() -> str:
    """Another one after each start of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
