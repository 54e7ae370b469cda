"""Slows down a command that prints without end: its output would delay the logs of all others."""

from __future__ import annotations

import time

BURST_BYTES = 128 * 1024 * 1024
"""What is taken as fast as it comes, at the start and after a quiet time."""
LINE_BYTES = 64
"""What a line costs on its way to the log besides its text."""
STEP_BYTES = 256 * 1024
"""What must be there again before reading goes on: fewer, longer pauses."""


class Pace:
    """How much of a command's output is taken.

    A pipe that is not read makes its writer wait, so nothing is lost.
    """

    def __init__(self, bytes_per_s: float = 0) -> None:
        """0: no limit."""
        self._bytes_per_s = bytes_per_s
        self._left = float(BURST_BYTES)
        self._at = time.monotonic()

    def spend(self, size: int) -> None:
        """Count output that was taken."""
        self._left -= size

    def pause_s(self) -> float:
        """Seconds for which no output is to be taken; 0 for most commands, always."""
        if self._left > 0 or not self._bytes_per_s:
            return 0.0
        now = time.monotonic()
        self._left = min(BURST_BYTES, self._left + (now - self._at) * self._bytes_per_s)
        self._at = now
        return max(0.0, STEP_BYTES - self._left) / self._bytes_per_s if self._left <= 0 else 0.0
