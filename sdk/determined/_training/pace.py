"""How often to look for a preemption: about once a second, at the same steps on all ranks."""

from __future__ import annotations

import time
from collections.abc import Callable

from determined import core

EVERY_S = 1.0
LONGEST_STRIDE = 1000
Clock = Callable[[], float]


class Pace:
    """Ranks have clocks of their own, so the chief's tells all of them the next step to look at."""

    def __init__(self, distributed: core.DistributedContext, clock: Clock = time.monotonic) -> None:
        self._distributed = distributed
        self._clock = clock
        self._next = 0
        self._stride = 1
        self._looked_at: float | None = None

    def is_due(self, step: int) -> bool:
        """Whether to look after this step; the same on all ranks that ask for all steps."""
        if step < self._next:
            return False
        self._next = step + int(self._distributed.broadcast(self._next_stride()))
        return True

    def _next_stride(self) -> int:
        now, before = self._clock(), self._looked_at
        self._looked_at = now
        if before is not None:
            # At most doubled: steps may become slow all of a sudden.
            fitting = self._stride * EVERY_S / max(now - before, 1e-3)
            self._stride = max(1, min(int(fitting), 2 * self._stride, LONGEST_STRIDE))
        return self._stride
