"""The cluster's log for people: decisions and observations, with one sentence per event."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from det_contracts import subjects
from det_contracts.events import Decision
from det_contracts.problems import unavailable
from services.catalogue.api_values import instant
from services.catalogue.catalogue import Catalogue
from services.kit.jetstream_feed import CANNOT_READ
from services.kit.log import Log, Stored
from services.why.history import History
from services.why.reader import decoded
from services.why.sentences import words


async def entries(
    journal: Log, catalogue: Catalogue, *, offset: int, limit: int, follow: bool
) -> AsyncIterator[list[dict[str, Any]]]:
    """At most `limit` entries (0 for all) from the `offset`-th on; a negative offset counts from the end.

    With `follow`, new entries are returned as they arrive.
    """
    try:
        first, last = await journal.bounds(subjects.CONTROL)
        after = max(first - 1, (first - 1 if offset >= 0 else last) + offset)
        left = limit
        if after >= last and not follow:
            return
        async with journal.read(subjects.CONTROL, after=min(after, last)) as feed:
            while True:
                batch = await feed.batch()
                found = await _told(batch.messages, catalogue)
                if not follow:
                    found = [one for one in found if int(one["logEntry"]["id"]) <= last]
                found = found[:left] if limit else found
                left -= len(found)
                yield found
                read_all = batch.caught_up or bool(batch.messages and batch.messages[-1].position >= last)
                if (limit and left <= 0) or (read_all and not follow):
                    return
    except CANNOT_READ as error:
        raise unavailable(f"the log cannot be read just now: {error!r}; try again") from error


async def _told(messages: Sequence[Stored], catalogue: Catalogue) -> list[dict[str, Any]]:
    history = History()
    all = [one for one in map(decoded, messages) if one is not None and not isinstance(one.event, Decision)]
    named = {id for one in all if (id := getattr(one.event, "allocation_id", None))}
    await catalogue.away.bring(("allocations", id) for id in named)
    runs = (catalogue.state.allocations.get(id) for id in named)
    history.trial_of = {one.id: one.trial_id for one in runs if one is not None}
    found = []
    for recorded in all:
        said = words(recorded.event, history)
        because = f": {said.reason}" if said.reason else ""
        text = f"{said.what}{because} [{recorded.actor}]"
        entry = {
            "id": recorded.position,
            "timestamp": instant(recorded.at),
            "level": "LOG_LEVEL_INFO",
            "message": text,
        }
        found.append({"logEntry": entry})
    return found
