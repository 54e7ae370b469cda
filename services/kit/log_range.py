"""Reading a part of the log once, up to its present end: for questions about the past."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from services.kit.log import Log, Stored


async def read_once(
    log: Log,
    stream: str,
    *,
    after: int = 0,
    before: int | None = None,
    subjects: Sequence[str] = (),
    keep: int = 1000,
    wanted: Callable[[Stored], bool] = lambda _: True,
) -> list[Stored]:
    """The newest `keep` messages between two positions (both excluded), in order; up to the end by default.

    `subjects` are filters as for `Log.read`. What passes the filters is read whole: choose them narrow, or
    the positions near. `wanted` chooses among what is read, before `keep` counts.
    """
    found: deque[Stored] = deque(maxlen=keep)
    async with log.read(stream, after=after, subjects=subjects) as feed:
        while True:
            batch = await feed.batch()
            for message in batch.messages:
                if before is not None and message.position >= before:
                    return list(found)
                if wanted(message):
                    found.append(message)
            if batch.caught_up or _is_last(batch.messages, before):
                return list(found)


def _is_last(messages: Sequence[Stored], before: int | None) -> bool:
    return before is not None and bool(messages) and messages[-1].position == before - 1
