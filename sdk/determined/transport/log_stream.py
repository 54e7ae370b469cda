"""Reads the log of a trial or task, optionally following it to the end (REST spec, section 6)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from determined.common.api import errors
from determined.transport import instant
from determined.transport.rest import TOO_MANY, Params, Session, is_passing

ENDED = frozenset({"STATE_COMPLETED", "STATE_CANCELED", "STATE_ERROR"})
_PAUSE_S = 0.5
_BUSY_PAUSE_S = 5.0
"""Pause before a stream is asked for again that the gateway had no place for."""
_TRIES = 4

Record = dict[str, Any]


class Source(NamedTuple):
    """The trial or task that a log belongs to."""

    noun: str
    """`trial` or `task`."""
    id: int | str

    @property
    def path(self) -> str:
        """Path of the trial or task in the REST API."""
        return f"/api/v1/{self.noun}s/{self.id}"


def trial(id: int) -> Source:
    """Return the source for a trial's log."""
    return Source("trial", id)


def task(id: str) -> Source:
    """Return the source for a task's log."""
    return Source("task", id)


def read(session: Session, source: Source, params: Params | None = None) -> Iterator[Record]:
    """Yield the lines available now, in the order requested by `params`."""
    yield from session.stream(f"{source.path}/logs", params)


def follow(session: Session, source: Source, params: Params | None = None) -> Iterator[Record]:
    """Yield every line once, in order, until the trial or task has ended and its log is complete.

    A broken connection is resumed after the last line, and a master that has no place for another stream is
    asked again. If the master is unreachable for more than a minute,
    `MasterNotFoundException` is raised. While a trial is paused nothing arrives and the stream stays open.
    """
    place = _Place(dict(params or {}))
    while True:
        broken, pause_s = False, _PAUSE_S
        try:
            yield from filter(place.is_new, read(session, source, place.params()))
        except errors.BadRequestException as error:
            if not is_passing(error):
                raise
            broken = True
            if isinstance(error, errors.StatusException) and error.status_code == TOO_MANY:
                pause_s = _BUSY_PAUSE_S
        # Also after a broken stream, because this waits until the master answers again.
        if _has_ended_patiently(session, source) and not broken:
            return
        time.sleep(pause_s)


def has_ended(session: Session, source: Source) -> bool:
    """Whether the trial or task is in a final state."""
    record = session.get(source.path)[source.noun]
    return bool(record.get("endTime")) if source.noun == "task" else record["state"] in ENDED


def _has_ended_patiently(session: Session, source: Source) -> bool:
    """Like `has_ended`, with retries. Each try includes the session's own retries, about 15 s."""
    for _ in range(_TRIES - 1):
        try:
            return has_ended(session, source)
        except errors.BadRequestException as error:
            if not is_passing(error):
                raise
    return has_ended(session, source)


class _Place:
    """Position in the log.

    Several lines may have the same microsecond, and `timestampAfter` excludes all of them. So the query
    starts just before the last line's timestamp, and lines already seen at that timestamp are skipped.
    """

    def __init__(self, params: dict[str, Any]) -> None:
        self._params = params
        self._last: datetime | None = None
        self._newest_ids: set[Any] = set()

    def params(self) -> dict[str, Any]:
        query = {**self._params, "follow": "true"}
        if self._last is not None:
            # Several lines may have the same time, so it is asked for again; `is_new` drops repeats.
            query["timestampAfter"] = instant.write(self._last - timedelta(microseconds=1))
        return query

    def is_new(self, record: Record) -> bool:
        at = instant.parse(record["timestamp"])
        if self._last is None or at > self._last:
            self._last, self._newest_ids = at, set()
        elif record["id"] in self._newest_ids:
            return False
        self._newest_ids.add(record["id"])
        return True
