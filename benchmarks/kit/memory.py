"""Memory of process trees, found by a text that all of their processes carry."""

from __future__ import annotations

import threading
from pathlib import Path

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
    """Proportional memory of all processes with a text in their environment or command line."""
    sought = mark.encode()
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if sought in (folder / "environ").read_bytes() or sought in (folder / "cmdline").read_bytes():
                rollup = (folder / "smaps_rollup").read_text()
                total += int(rollup.split("Pss:")[1].split()[0]) * 1024
        except (OSError, IndexError):
            continue
    return total
