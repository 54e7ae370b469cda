"""Ends tasks reliably.

One cancellation is not enough: in Python 3.11, `asyncio.wait_for` swallows one that arrives together with the
result it waits for. We do not use `wait_for`, but libraries do.
"""

from __future__ import annotations

import asyncio
from typing import Any

AGAIN_S = 2.0
"""Seconds a task may take to clean up before it is cancelled again."""
_ENDING: set[asyncio.Future[Any]] = set()


async def end(*works: asyncio.Future[Any]) -> None:
    """Cancel futures and wait until they have ended, in whatever way."""
    left = [work for work in works if not work.done()]
    try:
        while left:
            for work in left:
                work.cancel()
            await asyncio.wait(left, timeout=AGAIN_S)
            left = [work for work in left if not work.done()]
    except asyncio.CancelledError:
        end_soon(*left)
        raise


def go_on_unless_ended() -> None:
    """Check for a swallowed cancellation.

    Call it in every iteration of a loop around calls that may swallow one.

    Raises:
        asyncio.CancelledError: This task was cancelled, and the call it waited for swallowed that. A task
            group cancels its tasks only once when it ends, and would wait for this task forever.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def end_soon(*works: asyncio.Future[Any]) -> None:
    """Like `end`, but without waiting."""
    for work in works:
        # Cancel now rather than when the loop runs `end`.
        work.cancel()
    keep(asyncio.ensure_future(end(*works)))


def keep(work: asyncio.Future[Any]) -> None:
    """Keep a reference to a future that nobody awaits, because the event loop keeps none."""
    _ENDING.add(work)
    work.add_done_callback(_ENDING.discard)
