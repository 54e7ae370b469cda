"""One-time reads of part of the log, up to its current end: for questions about the past."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from services.kit.log import Log, Stored


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
    """Return the newest `keep` messages between two positions (exclusive), in order.

    By default it reads up to the end. `subjects` are filters as for `Log.read`. Everything that passes them
    is read, so use narrow filters or a short range. `predicate` selects among the messages read, before
    `keep` applies.
    """
    messages: deque[Stored] = deque(maxlen=keep)
    async with log.read(stream, after=after, subjects=subjects) as feed:
        while True:
            batch = await feed.batch()
            for message in batch.messages:
                if before is not None and message.position >= before:
                    return list(messages)
                if predicate(message):
                    messages.append(message)
            if batch.caught_up or _is_last(batch.messages, before):
                return list(messages)


def _is_last(messages: Sequence[Stored], before: int | None) -> bool:
    return before is not None and bool(messages) and messages[-1].position == before - 1
