"""One-time reads of part of the log, up to its current end: for questions about the past."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, nullcontext

from services.kit.log import Feed, Log, OutcomeUnknown, Stored

PATIENCE_S = 8.0
"""How long in seconds the broker may take to say where the log ends."""
LOOK_AGAIN_S = 5.0
"""After how many seconds without the messages that are to come it is asked whether they are still there."""


async def read_between(
    log: Log,
    stream: str,
    *,
    after: int = 0,
    before: int | None = None,
    subjects: Sequence[str] = (),
    opening: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> AsyncGenerator[Sequence[Stored], None]:
    """Yield the messages between two positions (exclusive), in order, by default up to the current end.

    The leader says where that is. A feed that has caught up may be that of a broker behind the others, which
    is waited for. `subjects` are filters as for `Log.read`. A feed is opened inside of `opening`, which is
    left before the messages are consumed. Raises `OutcomeUnknown` if the broker is away.
    """
    within_s = LOOK_AGAIN_S
    while True:
        async with AsyncExitStack() as opened:
            async with opening():
                end = await _end_of(log, stream, after, subjects)
                last = end if before is None else min(end, before - 1)
                if last <= after:
                    return
                feed = await opened.enter_async_context(log.read(stream, after=after, subjects=subjects))
                # Inside the place as well: the first batch is what costs the broker, which looks for the
                # subjects from there.
                messages = await _next_messages(feed, within_s)
            while messages is not None:
                yield [message for message in messages if before is None or message.position < before]
                if (after := feed.position) >= last:
                    return
                messages = await _next_messages(feed, within_s)
        # What is left was removed meanwhile, or the broker is far behind, and the next feed may be that of
        # another one. It is given longer, since what the archive holds may just come slowly.
        within_s *= 2


async def read_range(
    log: Log,
    stream: str,
    *,
    after: int = 0,
    before: int | None = None,
    subjects: Sequence[str] = (),
    keep: int = 1000,
    predicate: Callable[[Stored], bool] = lambda _: True,
) -> list[Stored]:
    """Return the newest `keep` messages of those that `read_between` yields, in order.

    Everything that passes `subjects` is read, so use narrow filters or a short range. `predicate` selects
    among the messages read, before `keep` applies.
    """
    newest: deque[Stored] = deque(maxlen=keep)
    reading = read_between(log, stream, after=after, before=before, subjects=subjects)
    async with aclosing(reading) as batches:
        async for messages in batches:
            newest.extend(filter(predicate, messages))
    return list(newest)


async def _end_of(log: Log, stream: str, after: int, subjects: Sequence[str]) -> int:
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await log.end(stream, after=after, subjects=subjects)
    except TimeoutError as error:
        raise OutcomeUnknown(f"the broker does not say what is in {stream}") from error


async def _next_messages(feed: Feed, within_s: float) -> Sequence[Stored] | None:
    """Return what comes next; None if that takes long."""
    try:
        async with asyncio.timeout(within_s):
            return (await feed.batch()).messages
    except TimeoutError:
        return None
