"""How long threads of this process stood in the queue for a processor, as Linux counts it."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import NamedTuple

TASKS = Path("/proc/self/task")
NANOSECONDS = 1_000_000_000


def waited_s(thread: int, tasks: Path = TASKS) -> float | None:
    """Seconds that a thread, by its native id, has waited to run in all; None where nobody counts it."""
    try:
        # "<ns on a processor> <ns in the run queue> <times it got one>"
        return int((tasks / str(thread) / "schedstat").read_text().split()[1]) / NANOSECONDS
    except (OSError, ValueError, IndexError):
        return None


class Taken(NamedTuple):
    """Seconds of a stretch that the machine has taken."""

    from_thread_s: float
    """At most, from the thread in question."""
    from_asker_s: float
    """From the asking thread, in the queue for a processor."""


class MachineTime:
    """Tells, stretch by stretch, how much of the time a thread was kept from its work by the machine alone.

    That is: it waited for a processor; another thread of the process did, which may have held the lock of the
    interpreter; or the whole process was stopped. To be asked by a thread other than the one in question.
    """

    def __init__(self, thread: int, tasks: Path = TASKS) -> None:
        self._thread = thread
        self._tasks = tasks
        self._own = threading.get_native_id()
        self._waited: dict[int, float] = {}
        self._asker_waited = 0.0
        self._processor_s = 0.0

    def begin(self) -> None:
        """The next stretch begins now. Costs two small reads."""
        self._own = threading.get_native_id()
        self._waited = self._read([self._thread])
        self._asker_waited = waited_s(self._own, self._tasks) or 0.0
        self._processor_s = time.process_time()

    def taken(self, late_s: float) -> Taken:
        """What the machine has taken since the stretch began; the next stretch begins.

        `late_s`: how much later than it wanted the asking thread is here. What of that is neither a wait for
        a processor nor work of this process was spent stopped or asleep, machine and all.
        """
        before, asker_before, processor_before = self._waited, self._asker_waited, self._processor_s
        self.begin()
        asker = self._asker_waited - asker_before
        stopped = late_s - asker - (self._processor_s - processor_before)
        self._waited = self._read(self._all())
        grown = {thread: s - before[thread] for thread, s in self._waited.items() if thread in before}
        mine = grown.pop(self._thread, 0.0)
        # Who waits for a processor with the lock in hand looks like one who is stopped: not both are added.
        return Taken(max(mine + max(grown.values(), default=0.0), stopped, 0.0), asker)

    def _read(self, threads: list[int]) -> dict[int, float]:
        read = {thread: waited_s(thread, self._tasks) for thread in threads}
        return {thread: s for thread, s in read.items() if s is not None}

    def _all(self) -> list[int]:
        try:
            return [int(name) for name in os.listdir(self._tasks) if int(name) != self._own]
        except OSError:
            return []
