"""Paces preemption checks: about once a second, and at the same steps on all ranks."""

from __future__ import annotations

import time
from collections.abc import Callable

from determined import core

EVERY_S = 1.0
MAX_STRIDE = 1000
Clock = Callable[[], float]


class Pace:
    """Schedules the checks.

    Clocks differ between ranks, so the chief broadcasts the next step to check at.
    """

    def __init__(self, distributed: core.DistributedContext, clock: Clock = time.monotonic) -> None:
        self._distributed = distributed
        self._clock = clock
        self._next = 0
        self._stride = 1
        self._looked_at: float | None = None

    def is_due(self, step: int) -> bool:
        """Whether to check after this step. The same on all ranks, provided they ask at every step."""
        if step < self._next:
            return False
        self._next = step + int(self._distributed.broadcast(self._next_stride()))
        return True

    def _next_stride(self) -> int:
        now, before = self._clock(), self._looked_at
        self._looked_at = now
        if before is not None:
            # At most double the stride, because steps may suddenly become slow.
            fitting = self._stride * EVERY_S / max(now - before, 1e-3)
            self._stride = max(1, min(int(fitting), 2 * self._stride, MAX_STRIDE))
        return self._stride
