"""Detects when a process's event loop stalls, and logs where.

The loop ticks several times a second. When ticks are missing, a thread captures the stack of the loop's
thread, so that the report shows the stall itself and not what came after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import structlog

from services.kit.processor_waits import TASKS, MachineTime

CHECKS_PER_LIMIT = 4
"""Looks per limit. A stall is certain to be seen once it exceeds the limit by this fraction."""
REPORT_AFTER_S = 10.0
"""Seconds after which an ongoing stall is reported; a shorter one is reported when it ends."""
STOP_S = 5.0
"""How long in seconds to wait, at the end, for a look that is under way."""

OnCheck = Callable[[float], None]
"""Called at every look, in the watchdog's thread. The argument is the length in seconds of an ongoing stall
over the limit, without the time taken by the machine; otherwise 0."""

log = structlog.get_logger()


def _ignore(seconds: float) -> None:
    return None


class _LateTick(NamedTuple):
    due: float
    at: float


class LoopWatchdog:
    """Watches the event loop of the thread that creates it."""

    def __init__(
        self,
        limit_s: float,
        count: Callable[[float], None],
        on_check: OnCheck = _ignore,
        tasks: str | Path = TASKS,
    ) -> None:
        """`count` gets the seconds of each stall over `limit_s`, without the time taken by the machine."""
        self._limit_s = limit_s
        self._count = count
        self._on_check = on_check
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._machine_time = MachineTime(threading.get_native_id(), tasks)
        self._period_s = limit_s / CHECKS_PER_LIMIT
        self._stopped = threading.Event()
        self._ticked_at = self._checked_at = time.monotonic()
        self._next: asyncio.TimerHandle | None = None
        self._late_ticks: deque[_LateTick] = deque()
        self._excused_until = self._checked_at
        """Until then, stalls and what the machine took of them are accounted for."""
        self._excused_s = 0.0
        self._stack: traceback.StackSummary | None = None
        self._is_over_limit = self._is_reported = False
        # Without a copied context, log lines from the thread would not name this process.
        work = contextvars.copy_context().run
        self._thread = threading.Thread(target=work, args=[self._watch], daemon=True, name="loop-watchdog")

    def start(self) -> None:
        """Start watching."""
        self._tick()
        self._thread.start()

    def stop(self) -> None:
        """Stop watching. Must be called in the loop's own thread; later stalls do not matter."""
        self._stopped.set()
        if self._next is not None:
            self._next.cancel()
        # A look that is under way would renew a switch that is disarmed next, and that ends the process.
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    def _tick(self) -> None:
        """The tick, run on the event loop."""
        now = time.monotonic()
        due = self._ticked_at + self._period_s
        if now - due > self._limit_s:
            self._late_ticks.append(_LateTick(due, now))
        self._ticked_at = now
        self._next = self._loop.call_later(self._period_s, self._tick)

    def _watch(self) -> None:
        self._machine_time.start_interval()
        while not self._stopped.wait(self._period_s) and not self._loop.is_closed():
            self._check()

    def _check(self) -> None:
        now = time.monotonic()
        # Keep this order, so that a tick in between does not hide a stall.
        due = self._ticked_at + self._period_s
        late_ticks = [self._late_ticks.popleft() for _ in range(len(self._late_ticks))]
        over = bool(late_ticks)
        if not over and now - due < self._period_s:
            self._reset(now)
            self._on_check(0.0)
            return
        if not self._is_over_limit and (not over or self._stack is None):
            # After a late tick, only if no stack was captured: the stalled thread held the interpreter lock.
            self._stack = self._stack_of_loop()
        passed_s = now - self._checked_at
        self._excused_s += min(self._machine_time.taken_s(passed_s - self._period_s), passed_s)
        self._checked_at = now
        late_s = [
            tick.at - max(tick.due, self._excused_until) for tick in late_ticks or [_LateTick(due, now)]
        ]
        # Several ticks were late if this thread was kept waiting, too. Which of them the machine delayed by
        # how much is unknown, so that no more is reported than one of them can be to blame for.
        stalled_s = min(max(late_s), sum(late_s) - self._excused_s)
        self._update_stall(stalled_s, over=over)
        self._on_check(stalled_s if self._is_over_limit and not over else 0.0)
        if over:
            # What is late again counts from here, as does what the machine takes.
            self._excused_until = now
            self._reset(now)

    def _reset(self, now: float) -> None:
        self._stack, self._excused_s = None, 0.0
        self._is_over_limit = self._is_reported = False
        self._checked_at = now
        self._machine_time.start_interval()

    def _update_stall(self, stalled_s: float, *, over: bool) -> None:
        # Only at the end of a stall is it known how much of it the machine took.
        self._is_over_limit = stalled_s > self._limit_s or (self._is_over_limit and not over)
        if self._is_over_limit and not self._is_reported and (over or stalled_s > REPORT_AFTER_S):
            self._is_reported = True
            report_args = (stalled_s, over, self._stack)
            work = contextvars.copy_context().run
            # In its own thread: the loop may be stalled because the reader of the log output is.
            threading.Thread(
                target=work, args=(self._report, *report_args), daemon=True, name="loop-stall"
            ).start()

    def _report(self, stalled_s: float, over: bool, stack: traceback.StackSummary | None) -> None:
        lines = "".join(stack.format()) if stack else ""
        log.warning("loop.blocked", seconds=round(stalled_s, 3), over=over, stack=lines)
        self._count(stalled_s)

    def _stack_of_loop(self) -> traceback.StackSummary:
        # Source lines are read from disk only if the stall is reported.
        frames = traceback.walk_stack(sys._current_frames()[self._loop_thread])
        stack = traceback.StackSummary.extract(frames, lookup_lines=False)
        stack.reverse()
        return stack


@contextlib.contextmanager
def watch_loop(limit_s: float, count: Callable[[float], None], on_check: OnCheck = _ignore) -> Iterator[None]:
    """Watch the running loop inside the context, unless the limit is 0.

    See `LoopWatchdog` for the arguments.
    """
    if limit_s <= 0:
        yield
        return
    watchdog = LoopWatchdog(limit_s, count, on_check)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()
