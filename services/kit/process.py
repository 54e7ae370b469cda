"""How a process of the platform runs, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import structlog

STUCK = 70
"""Exit status of a process that ended because it was of no use any more."""
LAST_WORDS_S = 10.0
MOST_TASKS = 100
"""Tasks whose stacks are written out."""

log = structlog.get_logger()


def run(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Run `work` on the fastest loop there is, and end the process with the status that it returns."""
    runner: Callable[[Coroutine[Any, Any, int]], int]
    try:
        import uvloop

        runner = uvloop.run
    except ImportError:
        runner = asyncio.run
    leave(runner(work))


def leave(status: int) -> NoReturn:
    """End this process now, with what it printed.

    Taking an interpreter apart object by object costs a service half a second and frees nothing that would
    not go with the process; and what still holds on to the loop cannot keep a failed one from ending.
    """
    for stream in (sys.stdout, sys.stderr):
        # On a full disk it ends all the same.
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(status)


def end_stuck(reason: str) -> NoReturn:
    """End this process, of which only a new start can make anything again; any thread may call this.

    The stacks of all threads go to its output first, and from the loop's thread those of all tasks.
    """
    # Whoever reads the output may be what everything waits for: the alarm ends the process all the same.
    signal.setitimer(signal.ITIMER_REAL, LAST_WORDS_S)
    faulthandler.dump_traceback()
    log.critical("process.stuck", reason=reason, tasks=_tasks())
    leave(STUCK)


def _tasks() -> list[str]:
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:
        # The loop is another thread's, and what stands still is told by the stack of that.
        return []
    return [_where(task) for task in list(tasks)[:MOST_TASKS]]


def _where(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack()
    places = [f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}" for frame in frames]
    return f"{task.get_name()}: " + (" > ".join(places) or "done")


def begin_dead_mans_switch(within_s: float) -> Callable[[], None]:
    """Have this process end when what this returns is not called for so many seconds of processor time.

    For what no thread can watch: a call that keeps the lock of the interpreter for ever. The kernel counts,
    and only while this process works: not while it is stopped, asleep or waits. All stacks are written first.
    """
    faulthandler.register(signal.SIGPROF, chain=True)

    def renew() -> None:
        signal.setitimer(signal.ITIMER_PROF, within_s)

    renew()
    return renew


def end_dead_mans_switch() -> None:
    """Let this process go on however long nobody renews."""
    signal.setitimer(signal.ITIMER_PROF, 0)
    faulthandler.unregister(signal.SIGPROF)


def single_errors(error: BaseException | None) -> list[BaseException]:
    """The errors themselves, out of groups in groups."""
    if error is None:
        return []
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [single for inner in error.exceptions for single in single_errors(inner)]
