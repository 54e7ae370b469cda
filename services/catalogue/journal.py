"""The cluster's log for people: decisions and observations, with one sentence per event."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from det_contracts import subjects
from det_contracts.events import Decision
from det_contracts.problems import unavailable
from services.catalogue.api_values import format_time
from services.catalogue.catalogue import Catalogue
from services.kit.jetstream_feed import READ_ERRORS
from services.kit.log import Log, Stored
from services.kit.log_range import read_between
from services.people import users
from services.why.event_descriptions import describe
from services.why.history import History
from services.why.reader import decode

PART = 100
"""Messages of which entries are made at once: a millisecond of work."""


async def entries(
    journal: Log, catalogue: Catalogue, *, offset: int, limit: int, follow: bool
) -> AsyncIterator[list[dict[str, Any]]]:
    """At most `limit` entries (0 for all) from the `offset`-th on; a negative offset counts from the end.

    With `follow`, new entries are returned as they arrive.
    """
    try:
        # Without `follow` the list ends at this `last`: on a busy cluster the log grows faster than somebody
        # reads it.
        first, last = await journal.bounds(subjects.CONTROL)
        # `first` is not 1 if the beginning of the log was removed; the offset counts from the oldest event
        # that is left.
        after = min(max(first - 1, (first - 1 if offset >= 0 else last) + offset), last)
        left = limit
        to_the_end = read_between(journal, subjects.CONTROL, after=after, before=last + 1)
        async with aclosing(_read_on(journal, after) if follow else to_the_end) as batches:
            async for messages in batches:
                for start in range(0, len(messages), PART):
                    log_entries = await _to_entries(messages[start : start + PART], catalogue)
                    log_entries = log_entries[:left] if limit else log_entries
                    left -= len(log_entries)
                    yield log_entries
                    if limit and left <= 0:
                        return
    except READ_ERRORS as error:
        raise unavailable(f"the log cannot be read just now: {error!r}; try again") from error


async def _read_on(journal: Log, after: int) -> AsyncGenerator[Sequence[Stored], None]:
    async with journal.read(subjects.CONTROL, after=after) as feed:
        while True:
            yield (await feed.batch()).messages


async def _to_entries(messages: Sequence[Stored], catalogue: Catalogue) -> list[dict[str, Any]]:
    history = History(lambda id: users.name_of(catalogue.state, id))
    events = [
        recorded
        for recorded in map(decode, messages)
        if recorded is not None and not isinstance(recorded.event, Decision)
    ]
    allocation_ids = {id for recorded in events if (id := getattr(recorded.event, "allocation_id", None))}
    # All at once in a thread: a lookup of an evicted record below would read the database in the event loop,
    # once per event.
    await catalogue.evicted.load(("allocations", id) for id in allocation_ids)
    runs = (catalogue.state.allocations.get(id) for id in allocation_ids)
    history.trial_of = {run.id: run.trial_id for run in runs if run is not None}
    log_entries = []
    for recorded in events:
        description = describe(recorded.event, history)
        reason = f": {description.reason}" if description.reason else ""
        text = f"{description.what}{reason} [{recorded.actor}]"
        entry = {
            "id": recorded.position,
            "timestamp": format_time(recorded.at),
            "level": "LOG_LEVEL_INFO",
            "message": text,
        }
        log_entries.append({"logEntry": entry})
    return log_entries
