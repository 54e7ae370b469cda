"""Memory of process trees, found by a text that all of their processes carry."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

from services.kit import host_processes

MIB = 1024 * 1024


class Peak:
    """Watches the memory of a process tree."""

    def __init__(self, mark: str, every_s: float = 0.5) -> None:
        self._mark = mark
        self._every_s = every_s
        self._most = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while True:
            self._most = max(self._most, tree_bytes(self._mark))
            if self._done.wait(self._every_s):
                return

    def stop(self) -> int:
        """The maximum that was seen."""
        self._done.set()
        self._thread.join()
        return self._most


def tree_bytes(mark: str) -> int:
    """Proportional memory of processes with a text in their environment or command line, and all below them.

    A worker's templates are below it, and do not carry the text themselves.
    """
    parents = {pid: _parent(pid) for pid in host_processes.all_pids()}
    marked = {pid for pid in parents if _carries(pid, mark.encode())}
    return sum(_bytes(pid) for pid in parents if not marked.isdisjoint(_line(pid, parents)))


def _line(pid: int, parents: dict[int, int]) -> Iterator[int]:
    """A process and those above it."""
    while pid in parents:
        yield pid
        pid = parents[pid]


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _carries(pid: int, sought: bytes) -> bool:
    folder = Path(f"/proc/{pid}")
    try:
        return sought in (folder / "environ").read_bytes() or sought in (folder / "cmdline").read_bytes()
    except OSError:
        return False


def _bytes(pid: int) -> int:
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return int(rollup.split("Pss:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        return 0
