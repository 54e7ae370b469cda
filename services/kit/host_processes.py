"""Processes on this machine, from /proc. Imports almost nothing, because the shim of every task loads it."""

from __future__ import annotations

import os


def started(pid: int) -> int | None:
    """Return a process's start time in clock ticks since boot; None if it is gone or a zombie.

    Distinguishes a process from a later one with the same id.
    """
    fields = _stat(pid)
    return None if fields is None else int(fields[19])


def unread_status(pid: int) -> int | None:
    """Return the status, as of `waitpid`, of a process that has ended and that nobody has waited for.

    None for others, and where only its first thread has ended.
    """
    fields = _fields(pid)
    return int(fields[49]) if fields is not None and _has_ended(fields) else None


def descendants(ancestor: int, session: int) -> set[int]:
    """Return live processes below `ancestor` or in `session`."""
    children: dict[int, list[int]] = {}
    pids: set[int] = set()
    for pid in all_pids():
        fields = _stat(pid)
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(pid)
            if int(fields[3]) == session:
                pids.add(pid)
    # A process that has become a daemon is no descendant any more, but still in the session.
    pending = [ancestor, *pids]
    while pending:
        below = [pid for pid in children.get(pending.pop(), ()) if pid not in pids]
        pids.update(below)
        pending += below
    return pids


def children() -> set[int]:
    """Return the children of this thread, zombies included; much faster than `descendants`.

    Empty where the kernel does not list them.
    """
    try:
        with open("/proc/thread-self/children", "rb") as file:
            return set(map(int, file.read().split()))
    except OSError:
        return set()


def children_of(pid: int) -> set[int]:
    """Return the live children of a process."""
    return {child for child in all_pids() if (fields := _stat(child)) is not None and int(fields[1]) == pid}


def active_s(pid: int) -> float:
    """Return for how many seconds a process has run, or has been ready to run and has waited for a processor.

    0 if it is gone, or where the kernel does not say.
    """
    nanoseconds = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                running, waiting, _ = file.read().split()
            nanoseconds += int(running) + int(waiting)
    except OSError:
        # It has ended, or one of its threads has meanwhile.
        pass
    return nanoseconds / 1e9


def all_pids() -> list[int]:
    """Return every process id in use."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def send(pids: set[int], number: int) -> None:
    """Send a signal to processes, ignoring those already gone, and those that have become another user's."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def die_with_parent(parent: int = 0) -> None:
    """Have this process killed when its parent exits.

    Args:
        parent: The parent's process id, if it may have exited before this call; then this process exits at
            once. Omit it only when calling between fork and exec.
    """
    import ctypes
    import signal

    death_signal = 1
    ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)
    # The parent may have ended before the call above, which then never takes effect.
    if parent and os.getppid() != parent:
        os._exit(1)


def _stat(pid: int) -> list[bytes] | None:
    """Return the fields of a process; None if it is gone or a zombie."""
    fields = _fields(pid)
    return None if fields is None or _has_ended(fields) else fields


def _has_ended(fields: list[bytes]) -> bool:
    # A process whose first thread has ended looks like a zombie, and its other threads go on.
    return fields[0] in (b"Z", b"X") and int(fields[17]) <= 1


def _fields(pid: int) -> list[bytes] | None:
    """Return the fields of /proc/PID/stat from the state on: state, parent, group, session, ..."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The second field is the program's name in parentheses, which may itself hold spaces and
            # parentheses.
            return file.read().rpartition(b")")[2].split() or None
    except OSError:
        return None
