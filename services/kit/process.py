"""How a process of the platform runs, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn


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


def single_errors(error: BaseException | None) -> list[BaseException]:
    """The errors themselves, out of groups in groups."""
    if error is None:
        return []
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [single for inner in error.exceptions for single in single_errors(inner)]
