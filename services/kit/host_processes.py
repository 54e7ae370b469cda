"""Processes of this machine as /proc shows them. Imports nothing, as the shim of every task loads it."""

from __future__ import annotations

import os


def started(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it is gone or only a zombie.

    Tells a process from a later one with the same id.
    """
    fields = _stat(pid)
    return None if fields is None else int(fields[19])


def descendants(ancestor: int, session: int) -> set[int]:
    """Live processes below `ancestor` or in `session`."""
    children: dict[int, list[int]] = {}
    found: set[int] = set()
    for pid in all_pids():
        fields = _stat(pid)
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(pid)
            if int(fields[3]) == session:
                found.add(pid)
    pending = [ancestor, *found]
    while pending:
        below = [pid for pid in children.get(pending.pop(), ()) if pid not in found]
        found.update(below)
        pending += below
    return found


def all_pids() -> list[int]:
    """Every process id in use."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def send(pids: set[int], number: int) -> None:
    """Signal processes; those that have gone meanwhile do not matter."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def die_with_parent(parent: int = 0) -> None:
    """Have this process killed when the one that started it ends.

    Args:
        parent: Its process id, where it may have ended before this is asked; then this process ends at once.
            Without it, who asks does so before anything else, between fork and exec.
    """
    import ctypes
    import signal

    death_signal = 1
    ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)
    if parent and os.getppid() != parent:
        os._exit(1)


def _stat(pid: int) -> list[bytes] | None:
    """Fields of /proc/PID/stat from the state on: state, parent, group, session, ..."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else fields
