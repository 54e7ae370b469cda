"""Processes that outlive the process that started them, each identified by a folder.

A process is told apart from a later one with the same pid by its start time, and across reboots by the boot
id. A worker also holds a lock in its home that names its pid, so it is found even if its starter was killed
before it could record the process.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from services.kit import host_processes
from services.kit.files import write_atomic

FILE = "process.json"
HOME = "home"
LOCK = "lock"
"""Lock file in a worker's home; see `worker.identity`."""


class ProcessRecord(msgspec.Struct, frozen=True):
    """A process as it was started."""

    pid: int
    began: str
    """Start time, in kernel ticks since boot."""
    boot: str
    """Boot id of the machine; pids are reused after a reboot."""


def record(folder: Path, pid: int) -> None:
    """Record the process started for a folder. Raises OSError."""
    write_atomic(folder / FILE, msgspec.json.encode(ProcessRecord(pid, _start_time(pid), _boot_id())))


def recorded_pid(folder: Path) -> int:
    """Return the pid of the process last started for a folder; 0 if there is none."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=ProcessRecord).pid
    except (OSError, msgspec.MsgspecError):
        return 0


def running_pid(folder: Path) -> int:
    """Return the pid of the process running for a folder; 0 if none is."""
    try:
        started = msgspec.json.decode((folder / FILE).read_bytes(), type=ProcessRecord)
    except (OSError, msgspec.MsgspecError):
        return _lock_holder(folder)
    same = started.boot == _boot_id() and bool(started.began) and _start_time(started.pid) == started.began
    return started.pid if same else _lock_holder(folder)


def has_locked(folder: Path) -> bool:
    """Whether a process has taken the lock of a folder at any time."""
    return (folder / HOME / LOCK).exists()


def leftover_pids(folder: Path) -> list[int]:
    """Return the processes started for something in a folder: a killed worker leaves scripts behind."""
    return [
        int(path.name)
        for path in Path("/proc").glob("[0-9]*")
        if int(path.name) != os.getpid() and _mentions(path, folder)
    ]


def _lock_holder(folder: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        pid = int((folder / HOME / LOCK).read_text())
        # The lock file has no start time, so the process must also name the folder.
        if _start_time(pid) and _mentions(Path(f"/proc/{pid}"), folder / HOME):
            return pid
    return 0


def _mentions(process: Path, folder: Path) -> bool:
    try:
        content = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    except OSError:
        return False
    path = os.fsencode(folder)
    return any(mark in content for mark in (path + b"/", path + b"\0"))


def _start_time(pid: int) -> str:
    """Return a process's start time; empty if it is gone or a zombie."""
    return str(host_processes.started(pid) or "")


def _boot_id() -> str:
    """Return the boot id, which changes with each boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
