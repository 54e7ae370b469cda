"""How long threads of this process waited in the run queue, as counted by Linux."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

TASKS = "/proc/self/task"
NANOSECONDS = 1_000_000_000


def waited_s(thread: int, tasks: str | Path = TASKS) -> float | None:
    """Return the total seconds a thread, given by native id, has waited to run; None if not counted."""
    try:
        # Five times as fast as a file object; every process reads this several times a second.
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
    """Measures, interval by interval, how long only the machine kept a thread from its work.

    That is the case if the thread waited for a processor, if another thread waited that may have held the
    interpreter lock, or if the whole process was stopped. Must be called from a thread other than the
    measured one.
    """

    def __init__(self, thread: int, tasks: str | Path = TASKS) -> None:
        self._thread = thread
        self._tasks = tasks
        self._own_thread = threading.get_native_id()
        self._waited: dict[int, float] = {}
        self._caller_waited_s = 0.0
        self._processor_s = 0.0

    def start_interval(self) -> None:
        """Start the next interval. Costs two small reads."""
        self._own_thread = threading.get_native_id()
        self._waited = self._read([self._thread])
        self._caller_waited_s = waited_s(self._own_thread, self._tasks) or 0.0
        self._processor_s = time.process_time()

    def taken_s(self, late_s: float) -> float:
        """Return the seconds taken by the machine in this interval, and start the next one.

        `late_s` is how much later than intended the calling thread runs. The part of it that is neither
        waiting for a processor nor work of this process was spent stopped or asleep.
        """
        before, asker_before, processor_before = self._waited, self._caller_waited_s, self._processor_s
        self.start_interval()
        stopped = late_s - (self._caller_waited_s - asker_before) - (self._processor_s - processor_before)
        self._waited = self._read(self._all())
        # A thread that has come since has no earlier count, so its wait may be older than the interval.
        grown = {thread: s - before[thread] for thread, s in self._waited.items() if thread in before}
        mine = grown.pop(self._thread, 0.0)
        # A thread waiting for a processor while holding the lock looks like a stop; do not add both.
        return max(mine + max(grown.values(), default=0.0), stopped, 0.0)

    def _read(self, threads: list[int]) -> dict[int, float]:
        read = {thread: waited_s(thread, self._tasks) for thread in threads}
        return {thread: s for thread, s in read.items() if s is not None}

    def _all(self) -> list[int]:
        try:
            return [int(name) for name in os.listdir(self._tasks) if int(name) != self._own_thread]
        except OSError:
            return []
