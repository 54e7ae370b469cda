"""Profiler: measures the parts of the training loop (Trainer spec, section 16).

Series are reported as metrics in their own groups, `profile.timing`, `profile.throughput` and
`profile.system`, at the steps where they were measured.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from determined.pytorch._system_metrics import Machine

MAX_DURATION_S = 300.0
SYSTEM_EVERY_S = 1.0
GROUP_TIMING, GROUP_THROUGHPUT = "profile.timing", "profile.throughput"
GROUP_SYSTEM = "profile.system"
_nothing = contextlib.nullcontext()
Report = Callable[[str, int, dict[str, Any]], None]


class Profiler:
    """Measures between two batches, for at most five minutes. Does not start again after a restart."""

    def __init__(
        self, enabled: bool = False, begin_on_batch: int = 0, end_after_batch: int | None = None,
        sync_timings: bool = True,
    ) -> None:  # fmt: skip
        self._begin = begin_on_batch
        self._end = end_after_batch
        self._sync = sync_timings and torch.cuda.is_available()
        self._enabled = enabled
        self._until = 0.0
        self._sums: dict[str, float] = {}
        self._records = 0
        self._machine: Machine | None = None
        self._sampled_at = 0.0
        self.active = False

    def at_batch(self, batch_idx: int) -> None:
        """Start or stop measuring, at the start of a batch."""
        if not self._enabled:
            return
        now = time.monotonic()
        # Only at this very batch: a run that resumes after it does not measure the same batches again.
        if not self.active and batch_idx == self._begin:
            self.active, self._until = True, now + MAX_DURATION_S
            self._machine, self._sampled_at = Machine(), now
        past = self._end is not None and batch_idx > self._end
        if self.active and (past or now > self._until):
            self.active = self._enabled = False
            self._machine = None

    def timed(self, name: str) -> Any:
        """Return a context manager that measures its block if profiling is active."""
        return self._measure(name) if self.active else _nothing

    @contextlib.contextmanager
    def _measure(self, name: str) -> Iterator[None]:
        begun = self._now()
        try:
            yield
        finally:
            self._sums[name] = self._sums.get(name, 0.0) + self._now() - begun

    def _now(self) -> float:
        if self._sync:
            # A call to the GPU returns before its work is done.
            torch.cuda.synchronize()
        return time.perf_counter()

    def trained(self, records: int) -> None:
        """Count the records of a trained batch, over all ranks."""
        if self.active:
            self._records += records

    def report(self, steps: int, to: Report) -> None:
        """Report the measurements since the last call, and system metrics about once a second."""
        self._report_system(steps, to)
        if not self._sums:
            return
        spent = self._sums.get("train_batch", 0.0)
        to(GROUP_TIMING, steps, {name: value for name, value in sorted(self._sums.items())})
        if spent and self._records:
            to(GROUP_THROUGHPUT, steps, {"samples_per_second": self._records / spent})
        self._sums, self._records = {}, 0

    def _report_system(self, steps: int, to: Report) -> None:
        now = time.monotonic()
        if self._machine is None or now - self._sampled_at < SYSTEM_EVERY_S:
            return
        self._sampled_at = now
        figures = self._machine.sample()
        if figures:
            to(GROUP_SYSTEM, steps, figures)
