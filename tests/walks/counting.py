"""Counts what one event costs, without a clock: lines of Python, records visited, bytes stored anew."""

import gc
import sys
from collections.abc import MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Cost:
    """Of one call."""

    steps: int = 0
    """Lines that ran, and records that were gone through."""
    size_bytes: int = 0
    """Of the records that have to be stored anew."""


class Meter:
    """What is being counted just now."""

    def __init__(self):
        self.steps = 0

    @contextmanager
    def counting(self):
        """Count the lines that run inside; a debugger or a measurement of coverage goes on behind it."""
        before, self.steps = sys.gettrace(), 0
        collects = gc.isenabled()
        # What a collection runs is of whatever was dropped before.
        gc.disable()
        sys.settrace(self._call)
        try:
            yield self
        finally:
            sys.settrace(before)
            if collects:
                gc.enable()

    def _call(self, frame, event, arg):
        return self._line

    def _line(self, frame, event, arg):
        if event == "line":
            self.steps += 1
        return self._line


class Records(MutableMapping):
    """A dictionary of records that counts what is gone through, and has nothing that a view need not have."""

    def __init__(self, of, meter):
        self._of = of
        self._meter = meter

    def __getitem__(self, key):
        return self._of[key]

    def __setitem__(self, key, value):
        self._of[key] = value

    def __delitem__(self, key):
        del self._of[key]

    def __contains__(self, key):
        return key in self._of

    def __len__(self):
        return len(self._of)

    def __iter__(self):
        for key in self._of:
            self._meter.steps += 1
            yield key
