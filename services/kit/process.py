"""How a platform process runs and exits."""

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

STUCK_STATUS = 70
"""Exit status of a process that exited because it was stuck."""
START_AGAIN = 75
"""Exit status of a process that its supervisor is to start again, although nothing is wrong."""
EXIT_TIMEOUT_S = 10.0
MAX_LOGGED_TASKS = 100
"""Maximum number of tasks whose stacks are logged."""

log = structlog.get_logger()


class StartAgain(Exception):
    """This process has to end, to start from the beginning. The text says why."""


def run(main: Coroutine[Any, Any, int]) -> NoReturn:
    """Run `main` on the fastest available event loop and exit with the status it returns."""
    runner: Callable[[Coroutine[Any, Any, int]], int]
    try:
        import uvloop

        runner = uvloop.run
    except ImportError:
        runner = asyncio.run
    exit_now(runner(main))


def exit_now(status: int) -> NoReturn:
    """Exit the process immediately after flushing its output.

    Tearing the interpreter down takes a service half a second and frees nothing that the exit would not.
    Also, leftover work on the event loop cannot keep a failed process alive.
    """
    for stream in (sys.stdout, sys.stderr):
        # Exit even on a full disk.
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(status)


def exit_stuck(reason: str) -> NoReturn:
    """Exit a process that only a restart can help. Any thread may call this.

    Logs the stacks of all threads first and, from the event loop's thread, those of all tasks.
    """
    # Writing may block on the reader of the output; the alarm then kills the process.
    signal.setitimer(signal.ITIMER_REAL, EXIT_TIMEOUT_S)
    faulthandler.dump_traceback()
    log.critical("process.stuck", reason=reason, tasks=_task_stacks())
    exit_now(STUCK_STATUS)


def _task_stacks() -> list[str]:
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:
        # Called from another thread; the loop's stack is in the traceback of its own thread.
        return []
    return [_task_stack(task) for task in list(tasks)[:MAX_LOGGED_TASKS]]


def _task_stack(task: asyncio.Task[Any]) -> str:
    """The task's name and what it awaits, outermost first."""
    frames = []
    awaits: Any = task.get_coro()
    # `Task.get_stack` of a task that waits ends at its outermost function.
    while (frame := _first_attribute(awaits, "cr_frame", "gi_frame")) is not None:
        frames.append(f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}")
        awaits = _first_attribute(awaits, "cr_await", "gi_yieldfrom")
    return f"{task.get_name()}: " + (" > ".join(frames) or "done")


def _first_attribute(of: object, *names: str) -> Any:
    """The first of an object's attributes that exists and is not None; else None."""
    return next((attribute for name in names if (attribute := getattr(of, name, None)) is not None), None)


def arm_dead_mans_switch(within_s: float) -> Callable[[], None]:
    """Exit this process unless the returned function is called every `within_s` seconds of processor time.

    This catches what no thread can detect: a call that holds the interpreter lock forever. The kernel counts
    only processor time, not time spent stopped, asleep or waiting. All stacks are written first.
    """
    faulthandler.register(signal.SIGPROF, chain=True)

    def renew() -> None:
        signal.setitimer(signal.ITIMER_PROF, within_s)

    renew()
    return renew


def disarm_dead_mans_switch() -> None:
    """Disable the switch, so that it no longer needs renewing."""
    signal.setitimer(signal.ITIMER_PROF, 0)
    faulthandler.unregister(signal.SIGPROF)


def flatten_errors(error: BaseException | None) -> list[BaseException]:
    """Flatten nested exception groups into their single errors."""
    if error is None:
        return []
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [single for inner in error.exceptions for single in flatten_errors(inner)]
