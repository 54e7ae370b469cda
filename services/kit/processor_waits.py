"""How long threads of this process stood in the queue for a processor, as Linux counts it."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

TASKS = "/proc/self/task"
NANOSECONDS = 1_000_000_000


def waited_s(thread: int, tasks: str | Path = TASKS) -> float | None:
    """Seconds that a thread, by its native id, has waited to run in all; None where nobody counts it."""
    try:
        # Five times as fast as a file object, for what is read some times a second in every program.
        file = os.open(f"{tasks}/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # "<ns on a processor> <ns in the run queue> <times it got one>"
        return int(os.read(file, 100).split()[1]) / NANOSECONDS
    except (OSError, ValueError, IndexError):
        return None
    finally:
        os.close(file)


class MachineTime:
    """Tells, stretch by stretch, how much of the time a thread was kept from its work by the machine alone.

    That is: it waited for a processor; another thread of the process did, which may have held the lock of the
    interpreter; or the whole process was stopped. To be asked by a thread other than the one in question.
    """

    def __init__(self, thread: int, tasks: str | Path = TASKS) -> None:
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

    def taken_s(self, late_s: float) -> float:
        """Seconds that the machine has taken since the stretch began; the next stretch begins.

        `late_s`: how much later than it wanted the asking thread is here. What of that is neither a wait for
        a processor nor work of this process was spent stopped or asleep, machine and all.
        """
        before, asker_before, processor_before = self._waited, self._asker_waited, self._processor_s
        self.begin()
        stopped = late_s - (self._asker_waited - asker_before) - (self._processor_s - processor_before)
        self._waited = self._read(self._all())
        grown = {thread: s - before[thread] for thread, s in self._waited.items() if thread in before}
        mine = grown.pop(self._thread, 0.0)
        # Who waits for a processor with the lock in hand looks like one who is stopped: not both are added.
        return max(mine + max(grown.values(), default=0.0), stopped, 0.0)

    def _read(self, threads: list[int]) -> dict[int, float]:
        read = {thread: waited_s(thread, self._tasks) for thread in threads}
        return {thread: s for thread, s in read.items() if s is not None}

    def _all(self) -> list[int]:
        try:
            return [int(name) for name in os.listdir(self._tasks) if int(name) != self._own]
        except OSError:
            return []
