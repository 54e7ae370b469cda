"""Tasks that are to end, and do.

One cancellation is not enough: in Python 3.11 `asyncio.wait_for` swallows one that comes at the same moment
as what it waits for. We do not use it, but libraries do.
"""

from __future__ import annotations

import asyncio
from typing import Any

AGAIN_S = 2.0
"""What a task may take to let go of what it holds, before it is cancelled once more."""
_ENDING: set[asyncio.Future[Any]] = set()


async def end(*works: asyncio.Future[Any]) -> None:
    """Cancel them, and wait until they have ended, however they do."""
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
    """For a loop around what may swallow a cancellation, in each of its rounds.

    Raises:
        asyncio.CancelledError: This task was cancelled, and what it waited for has swallowed that. A task
            group that ends cancels its tasks once, and would wait for this one for ever.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def end_soon(*works: asyncio.Future[Any]) -> None:
    """The same, without waiting for it."""
    for work in works:
        # Now, and not when the loop comes to it.
        work.cancel()
    keep(asyncio.ensure_future(end(*works)))


def keep(work: asyncio.Future[Any]) -> None:
    """Hold on to work that nobody waits for: the loop itself does not."""
    _ENDING.add(work)
    work.add_done_callback(_ENDING.discard)
