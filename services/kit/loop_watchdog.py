"""Notices that a process' event loop stands still, and says where it stood.

A thread asks the loop for a sign of life some times a second. While none comes it looks at the stack of the
loop's thread: what is told of it was seen during the stall, not after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import structlog

from services.kit.processor_waits import TASKS, MachineTime

LOOKS_PER_LIMIT = 4
"""A stall is seen for sure once it is longer than the limit by this part of it."""
TOLD_AFTER_S = 10.0
"""A stall without an end is told after so long; one that ends, when it does."""

log = structlog.get_logger()


class LoopWatchdog:
    """Watches the loop that runs in the thread which makes this."""

    def __init__(self, limit_s: float, count: Callable[[float], None], tasks: Path = TASKS) -> None:
        """`count` is given the seconds of each stall longer than `limit_s`, less what the machine took."""
        self._limit_s = limit_s
        self._count = count
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        self._machine = MachineTime(threading.get_native_id(), tasks)
        self._period_s = limit_s / LOOKS_PER_LIMIT
        self._stopped = threading.Event()
        self._asked_at = self._looked_at = self._excused_s = 0.0
        self._answered_at: float | None = None
        self._stack: traceback.StackSummary | None = None
        self._crossed = self._told = False
        # In a context of its own it would not say in the log which process this is.
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=[self._watch], daemon=True, name="loop-watchdog"
        )

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more; what stands still from now on is nobody's concern."""
        self._stopped.set()

    def _watch(self) -> None:
        try:
            self._ask()
            while not self._stopped.wait(self._period_s):
                self._look()
        except RuntimeError:
            # A closed loop cannot be asked.
            if not self._loop.is_closed():
                raise

    def _ask(self) -> None:
        self._answered_at, self._stack, self._excused_s = None, None, 0.0
        self._crossed = self._told = False
        self._machine.begin()
        self._asked_at = self._looked_at = time.monotonic()
        self._loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._answered_at = time.monotonic()

    def _look(self) -> None:
        now, answered_at = time.monotonic(), self._answered_at
        # Who holds the interpreter's lock keeps this thread from looking, too.
        late_s = now - self._looked_at - self._period_s
        over = answered_at is not None
        stood_s = (answered_at or now) - self._asked_at
        if over and max(stood_s, late_s) < self._limit_s:
            self._ask()
            return
        if not self._crossed and (not over or self._stack is None):
            self._stack = self._stack_of_loop()
        taken = self._machine.taken(late_s)
        self._excused_s += min(taken.from_thread_s, now - self._looked_at)
        self._looked_at = now
        self._judge(max(stood_s, late_s - taken.from_asker_s) - self._excused_s, over=over)

    def _judge(self, stalled_s: float, *, over: bool) -> None:
        self._crossed = self._crossed or stalled_s > self._limit_s
        if self._crossed and not self._told and (over or stalled_s > TOLD_AFTER_S):
            self._told = True
            self._count(stalled_s)
            stack = "".join(self._stack.format()) if self._stack else ""
            log.warning("loop.blocked", seconds=round(stalled_s, 3), over=over, stack=stack)
        if over:
            self._ask()

    def _stack_of_loop(self) -> traceback.StackSummary:
        # Lines are read from disk only where somebody is told of them.
        frames = traceback.walk_stack(sys._current_frames()[self._watched])
        stack = traceback.StackSummary.extract(frames, lookup_lines=False)
        stack.reverse()
        return stack


@contextlib.contextmanager
def watching(limit_s: float, count: Callable[[float], None]) -> Iterator[None]:
    """Watch the running loop meanwhile; not at all for a limit of 0. Arguments as `LoopWatchdog` has them."""
    if limit_s <= 0:
        yield
        return
    watchdog = LoopWatchdog(limit_s, count)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()
