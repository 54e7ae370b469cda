"""Ends tasks reliably.

One cancellation is not enough: in Python 3.11, `asyncio.wait_for` swallows one that arrives together with the
result it waits for. We do not use `wait_for`, but libraries do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

RECANCEL_S = 2.0
"""Seconds a task may take to clean up before it is cancelled again."""
_ENDING: set[asyncio.Future[Any]] = set()


async def cancel_and_wait(*futures: asyncio.Future[Any]) -> None:
    """Cancel futures and wait until they have ended, in whatever way."""
    for future in futures:
        future.cancel()
    await _wait_until_ended(*futures)


async def _wait_until_ended(*cancelled: asyncio.Future[Any]) -> None:
    """Wait for futures that were cancelled, and cancel again those that have not ended in time.

    Not sooner: a second cancellation interrupts the cleanup that the first has begun, and leaves behind what
    it would have released.
    """
    left = [future for future in cancelled if not future.done()]
    try:
        while left:
            await asyncio.wait(left, timeout=RECANCEL_S)
            left = [future for future in left if not future.done()]
            for future in left:
                future.cancel()
    except asyncio.CancelledError:
        # Whoever waits is cancelled itself. The others still have to be cancelled again if they do not end.
        keep_reference(asyncio.ensure_future(_wait_until_ended(*left)))
        raise


async def finish(cleanup: Awaitable[object]) -> None:
    """Run a cleanup to its end: if the caller is cancelled meanwhile, it continues in the background.

    Without this, a cancellation at the first `await` of a cleanup skips all that follows it.
    """
    running = asyncio.ensure_future(cleanup)
    keep_reference(running)
    await asyncio.shield(running)


def raise_if_cancelled(task: asyncio.Task[Any] | None = None) -> None:
    """Check for a swallowed cancellation.

    Call it in every iteration of a loop around calls that may swallow one.

    Args:
        task: This task, if the caller knows it already.

    Raises:
        asyncio.CancelledError: This task was cancelled, and the call it waited for swallowed that. A task
            group cancels its tasks only once when it ends, and would wait for this task forever.
    """
    task = task or asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def cancel_in_background(*futures: asyncio.Future[Any]) -> None:
    """Like `cancel_and_wait`, but without waiting."""
    for future in futures:
        future.cancel()
    keep_reference(asyncio.ensure_future(_wait_until_ended(*futures)))


def keep_reference(future: asyncio.Future[Any]) -> None:
    """Keep a reference to a future that nobody awaits, because the event loop keeps none."""
    _ENDING.add(future)
    future.add_done_callback(_ENDING.discard)
