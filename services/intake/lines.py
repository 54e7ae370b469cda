"""Whether a worker may say log lines: it hands in those of runs that were placed on it, and no others.

Which worker a run was placed on is in CONTROL, in the record of its assignment, and never changes. It is
looked up there when the first lines of a run come, and remembered for the next ones.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from det_contracts import subjects
from det_contracts.events.scheduler import AllocationAssigned
from det_contracts.limits import is_name
from det_contracts.reports import log_id
from services.kit.log import Log
from services.kit.records import read_event

REMEMBERED = 20_000
"""Runs whose workers are remembered; those that were asked for longest ago are looked up again."""
_ASSIGNED = "scheduler.allocation.assigned"


class NotTheirs(Exception):
    """Lines that this worker may not say; the text says why."""


class Head(msgspec.Struct, frozen=True):
    """What a `LogBatch` says of itself."""

    task_id: str
    allocation_id: str
    worker_id: str
    source: str
    offset: int

    @property
    def id(self) -> str:
        """Known for its repeats by what it is, and not by what its sender says: nobody claims another's."""
        return log_id(self.allocation_id, self.worker_id, self.source, self.offset)


class Run(msgspec.Struct, frozen=True):
    """What was assigned under an id."""

    task_id: str
    workers: frozenset[str]


_heads = msgspec.json.Decoder(Head)


def head_of(subject: str, body: bytes) -> Head:
    """What is said on a worker's subject; raises `NotTheirs` for what is not said in its own name."""
    worker = subject.split(".")[2]
    try:
        head = _heads.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise NotTheirs(f"these are no log lines: {error}") from None
    if head.worker_id != worker:
        raise NotTheirs(f"worker {worker} may not say lines of worker {head.worker_id[:100]}")
    if head.offset < 0:
        raise NotTheirs("a worker says where in its spool lines begin")
    if not all(map(_is_token, (head.task_id, head.allocation_id))) or not _is_plain(head.source):
        raise NotTheirs("no task, run or source is named so")
    return head


def check(head: Head, run: Run | None) -> None:
    """Raise `NotTheirs` where a worker has no part in what was assigned, or it is another task's."""
    if run is None or run.task_id != head.task_id or head.worker_id not in run.workers:
        named = f"{head.allocation_id[:100]} of task {head.task_id[:100]}"
        raise NotTheirs(f"{named} was not placed on worker {head.worker_id}")


class Placements:
    """Which workers each run was placed on."""

    def __init__(self, journal: Log) -> None:
        self._journal = journal
        self._known: OrderedDict[str, Run] = OrderedDict()

    def known(self, allocation_id: str) -> Run | None:
        """A run, if it is remembered."""
        if allocation_id in self._known:
            self._known.move_to_end(allocation_id)
        return self._known.get(allocation_id)

    async def look_up(self, allocation_id: str) -> Run | None:
        """A run, as the log says; None where nothing was ever assigned under that id."""
        last = await self._journal.last(subjects.control(_ASSIGNED, allocation_id))
        event = read_event(last).event if last is not None else None
        if not isinstance(event, AllocationAssigned) or event.allocation_id != allocation_id:
            # Not remembered: it may be assigned yet.
            return None
        found = Run(event.task_id, frozenset(part.worker_id for part in event.parts))
        self._known[allocation_id] = found
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return found


def _is_token(text: str) -> bool:
    """Whether it may be part of a subject, and means itself there."""
    return _is_plain(text) and not set(text) & set(" *>") and all(text.split("."))


def _is_plain(text: str) -> bool:
    """Whether it may stand in a header, and a database may look it up."""
    return text.isascii() and text.isprintable() and is_name(text)
