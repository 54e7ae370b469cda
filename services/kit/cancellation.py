"""Ends tasks reliably.

One cancellation is not enough: in Python 3.11, `asyncio.wait_for` swallows one that arrives together with the
result it waits for. We do not use `wait_for`, but libraries do.
"""

from __future__ import annotations

import asyncio
from typing import Any

RECANCEL_S = 2.0
"""Seconds a task may take to clean up before it is cancelled again."""
_ENDING: set[asyncio.Future[Any]] = set()


async def cancel_and_wait(*futures: asyncio.Future[Any]) -> None:
    """Cancel futures and wait until they have ended, in whatever way."""
    left = [future for future in futures if not future.done()]
    try:
        while left:
            for future in left:
                future.cancel()
            await asyncio.wait(left, timeout=RECANCEL_S)
            left = [future for future in left if not future.done()]
    except asyncio.CancelledError:
        cancel_in_background(*left)
        raise


def raise_if_cancelled() -> None:
    """Check for a swallowed cancellation.

    Call it in every iteration of a loop around calls that may swallow one.

    Raises:
        asyncio.CancelledError: This task was cancelled, and the call it waited for swallowed that. A task
            group cancels its tasks only once when it ends, and would wait for this task forever.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def cancel_in_background(*futures: asyncio.Future[Any]) -> None:
    """Like `end`, but without waiting."""
    for future in futures:
        # Cancel now rather than when the loop runs `end`.
        future.cancel()
    keep_reference(asyncio.ensure_future(cancel_and_wait(*futures)))


def keep_reference(future: asyncio.Future[Any]) -> None:
    """Keep a reference to a future that nobody awaits, because the event loop keeps none."""
    _ENDING.add(future)
    future.add_done_callback(_ENDING.discard)
