"""The most processor time that an event loop has spent on one thing."""

import gc
import time

from tests.fixtures.processor_speed import slowness

LIMIT_S = 0.5
"""Of a usual processor's time, that the loop may spend on one thing."""


class LongestTurn:
    """Stands in for what runs a callback of the loop, and keeps the longest.

    Time that the garbage collector took does not count: it looks through what all tests of this process hold.
    """

    def __init__(self, run):
        self._run = run
        self._collecting_since = self._collected_s = 0.0
        self.spent_s = 0.0
        self.what = ""

    def timed(self, handle):
        """Run a callback."""
        gc.callbacks.append(self._collection)
        self._collected_s, began = 0.0, time.thread_time()
        try:
            self._run(handle)
        finally:
            spent_s = time.thread_time() - began - self._collected_s
            gc.callbacks.remove(self._collection)
        if spent_s > LIMIT_S:
            # Now, and not later: how fast a shared processor is changes from second to second.
            spent_s /= slowness()
        if spent_s > self.spent_s:
            self.spent_s, self.what = spent_s, repr(handle)[:300]

    def _collection(self, phase, _):
        if phase == "start":
            self._collecting_since = time.thread_time()
        else:
            self._collected_s += time.thread_time() - self._collecting_since

    def check(self):
        """Fail where something held up the loop."""
        assert self.spent_s < LIMIT_S, f"{self.spent_s:.2f} s: {self.what}"
