"""Checks whether a worker may send log lines: only for runs that were placed on it.

Which workers a run was placed on is in CONTROL, in the record of its assignment, and never changes. It is
looked up when the first lines of a run arrive, and cached.
"""

from __future__ import annotations

import msgspec

from det_contracts import subjects
from det_contracts.events.scheduler import AllocationAssigned
from det_contracts.limits import is_name
from det_contracts.reports import log_id
from services.kit.bounded_dict import BoundedDict
from services.kit.log import Log
from services.kit.records import read_event

REMEMBERED = 20_000
"""Number of runs whose workers are cached. The least recently used ones are dropped."""
_ASSIGNED = "scheduler.allocation.assigned"


class LinesRefused(Exception):
    """Lines that this worker may not send; the text says why."""


class Head(msgspec.Struct, frozen=True):
    """The header fields of a `LogBatch`."""

    task_id: str
    allocation_id: str
    worker_id: str
    source: str
    offset: int

    @property
    def id(self) -> str:
        """The deduplication id, computed from the content: a sender cannot claim another's id."""
        return log_id(self.allocation_id, self.worker_id, self.source, self.offset)


class Run(msgspec.Struct, frozen=True):
    """What was assigned under an allocation id."""

    task_id: str
    workers: frozenset[str]


_heads = msgspec.json.Decoder(Head)


def head_of(subject: str, body: bytes) -> Head:
    """Decode the header of a message. Raises `LinesRefused` if it is not in the sending worker's own name."""
    worker = subject.split(".")[2]
    try:
        head = _heads.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise LinesRefused(f"the message is not a batch of log lines: {error}") from None
    if head.worker_id != worker:
        raise LinesRefused(f"worker {worker} may not send log lines of worker {head.worker_id[:100]}")
    # A negative offset would not be counted, and so be stored as often as it is sent.
    if head.offset < 0:
        raise LinesRefused("the offset of a worker's log lines must be 0 or more")
    if not all(map(_is_token, (head.task_id, head.allocation_id))) or not _is_plain(head.source):
        raise LinesRefused("the name of the task, allocation or source is invalid")
    return head


def check_placement(head: Head, run: Run | None) -> None:
    """Raise `LinesRefused` if the worker has no part in the assignment, or it belongs to another task."""
    if run is None or run.task_id != head.task_id or head.worker_id not in run.workers:
        run_name = f"{head.allocation_id[:100]} of task {head.task_id[:100]}"
        raise LinesRefused(f"{run_name} was not placed on worker {head.worker_id}")


class Placements:
    """The workers that each run was placed on."""

    def __init__(self, journal: Log) -> None:
        self._journal = journal
        self._cache: BoundedDict[str, Run] = BoundedDict(REMEMBERED)

    def cached(self, allocation_id: str) -> Run | None:
        """A run, if it is cached."""
        if allocation_id in self._cache:
            self._cache.move_to_end(allocation_id)
        return self._cache.get(allocation_id)

    async def look_up(self, allocation_id: str) -> Run | None:
        """Look up a run in the log. None if nothing was ever assigned under this id."""
        last = await self._journal.last(subjects.control(_ASSIGNED, allocation_id))
        event = read_event(last).event if last is not None else None
        if not isinstance(event, AllocationAssigned) or event.allocation_id != allocation_id:
            # Not cached, because it may be assigned later.
            return None
        run = Run(event.task_id, frozenset(part.worker_id for part in event.parts))
        self._cache[allocation_id] = run
        return run


def _is_token(text: str) -> bool:
    """Whether a text can be one token of a subject, without special meaning."""
    return _is_plain(text) and not set(text) & set(" *>") and all(text.split("."))


def _is_plain(text: str) -> bool:
    """Whether a text is allowed in headers and database queries."""
    return text.isascii() and text.isprintable() and is_name(text)
