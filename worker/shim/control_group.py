"""The control groups of one run: what the kernel lets the command and everything it starts use together.

The worker chooses them (`worker/control_groups.py`). The shim itself is in none of them.
"""

from __future__ import annotations

import contextlib
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROCESSES, THREADS = "cgroup.procs", "tasks"
"""The files that take a process, and in version 1 a single thread."""
REMOVE_S = 0.5
"""How long to wait for the kernel to take ended processes out of a group."""


class ControlGroups:
    """The groups of one run: one, or one for each kind of limit where the kernel keeps these apart."""

    def __init__(self, groups: list[dict[str, Any]]) -> None:
        """Each group is a `folder`, and the `values` of its files in the order in which to write them."""
        self._groups = groups
        self._folders = [group["folder"] for group in groups]
        self._refused: int | None = None
        self.limits = "".join(group.get("limits", "") for group in groups)

    def make(self) -> None:
        """Create the groups with their limits. May be repeated. Raises `OSError`."""
        for group in self._groups:
            os.makedirs(group["folder"], exist_ok=True)
            for name, value in group["values"]:
                write_value(os.path.join(group["folder"], name), value)

    def enter(self) -> None:
        """Move the calling process, which has one thread, into the groups. Raises `OSError`."""
        for folder in self._folders:
            # A thread that moves itself goes at once. To move a process, the kernel waits until nothing on
            # this host is about to fork: 10 ms on an idle host, 60 on a busy one.
            alone = os.path.join(folder, THREADS)
            write_value(alone if os.path.exists(alone) else os.path.join(folder, PROCESSES), "0")

    def pids(self) -> set[int]:
        """The processes in the groups, whoever their parents are."""
        pids = {int(pid) for folder in self._folders for pid in _read(folder, PROCESSES).split()}
        # A process that this program cannot see has the number 0, which means something else to `kill`.
        return pids - {0}

    def forbid_processes(self) -> None:
        """Let nothing in the groups start another process or thread, so that what is there can be ended."""
        self._refused = self.refused_processes()
        for folder in self._folders:
            # There are kernels and groups without this limit.
            with contextlib.suppress(OSError):
                write_value(os.path.join(folder, "pids.max"), "0")

    def memory_kills(self) -> int | None:
        """How many of its processes the kernel has ended for their memory; None if it does not count them."""
        return self._count("oom_kill", "memory.events", "memory.oom_control")

    def refused_processes(self) -> int:
        """How many processes and threads were refused because the group had as many as it may."""
        return self._count("max", "pids.events") or 0 if self._refused is None else self._refused

    def _count(self, key: str, *names: str) -> int | None:
        lines = [
            line.split() for f in self._folders for name in names for line in _read(f, name).splitlines()
        ]
        return next((int(words[1]) for words in lines if words[0] == key), None)

    def remove(self) -> None:
        """Remove the groups. One in which something still runs stays."""
        until = time.monotonic() + REMOVE_S
        while not all([_remove(folder) for folder in self._folders]) and time.monotonic() < until:
            time.sleep(0.01)


def write_value(path: str, value: str) -> None:
    """Write to a file of a group. Raises `OSError`, which names the file."""
    # No file of a group is ever created: one that is missing means that this kernel has no such limit.
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, value.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(file)


def _read(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name)) as file:
            return file.read()
    except OSError:
        # It has no such file, or is gone.
        return ""


def _remove(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
