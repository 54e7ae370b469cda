"""The most processor time that an event loop has spent on one thing."""

import time

from tests.fixtures.processor_speed import slowness

LIMIT_S = 0.5
"""Of a usual processor's time, that the loop may spend on one thing."""


class LongestTurn:
    """Stands in for what runs a callback of the loop, and keeps the longest."""

    def __init__(self, run):
        self._run = run
        self.spent_s = 0.0
        self.what = ""

    def timed(self, handle):
        """Run a callback."""
        began = time.thread_time()
        self._run(handle)
        if (spent_s := time.thread_time() - began) > self.spent_s:
            self.spent_s, self.what = spent_s, repr(handle)[:300]

    def check(self):
        """Fail where something held up the loop."""
        if self.spent_s >= LIMIT_S:
            limit_s = LIMIT_S * slowness()
            assert self.spent_s < limit_s, self.what
