"""Says for a script what it would state itself if it could reach the message bus.

Scripts with another SDK than ours, and people's own programs, use the REST API. What they say goes into the
same log, on the same subjects, as the same events.
"""

from __future__ import annotations

import time
import uuid
from typing import Any

import msgspec

from det_contracts import codec, subjects
from det_contracts.events import scheduler, searcher
from det_contracts.problems import Problem, Refused, precondition, unavailable
from det_contracts.reports import ReportBatch
from services.gateway.domain import Trial
from services.gateway.web.visit import UserVisit
from services.kit.log import Draft, OutcomeUnknown

MOST_BYTES = 7 * 1024 * 1024
"""Of one report; the broker takes a little more in one message."""


class Witness:
    """One trial's present run, spoken for by whoever may."""

    def __init__(self, visit: UserVisit, trial_id: int) -> None:
        """Raises `Refused`: no such trial (404), or the session belongs to another one's run (403)."""
        self.trial: Trial = visit.catalogue.trial(trial_id)
        session = visit.session()
        allocation = visit.catalogue.state.allocations.get(session.allocation)
        if allocation is not None and allocation.trial_id != trial_id:
            message = f"the token is that of {allocation.id}, which does not belong to trial {trial_id}"
            raise Refused(Problem("permission_denied", message))
        self._journal = visit.backend.journal
        self._actor = f"trial:{trial_id}" if session.allocation else f"user:{session.user}"

    @property
    def run(self) -> int:
        """The present run; raises `Refused` (400) before the first."""
        if not self.trial.run:
            raise precondition(f"trial {self.trial.id} has not started: it has no run to speak for yet")
        return self.trial.run

    async def state(self, event: Any, id: str = "") -> int:
        """State a fact; with an `id`, repeats of it are one. Returns its position."""
        id = id or f"fact-{uuid.uuid4().hex}"
        body = codec.encode(event, id=id, actor=self._actor, at=time.time())
        return await append(self._journal, Draft(codec.subject_of(event), body, id))

    async def report(self, batch: ReportBatch) -> int:
        """Store a report; returns its position in REPORTS."""
        body = msgspec.json.encode(batch)
        if len(body) > MOST_BYTES:
            message = f"the metrics have {len(body)} bytes; one report is limited to {MOST_BYTES}"
            raise Refused(Problem("exhausted", message))
        subject = subjects.reports(batch.trial_id)
        return await append(self._journal, Draft(subject, body, f"report-{uuid.uuid4().hex}"))

    async def operation(self) -> tuple[searcher.OperationSet | None, bool]:
        """The newest operation, and whether nothing of it is left to do."""
        newest = await self._last(searcher.OperationSet, self.trial.id)
        idled = await self._last(searcher.TrialIdled, self.trial.id)
        over = self.trial.ended_at is not None
        return newest, over or (newest is not None and idled is not None and idled.seq >= newest.seq)

    async def _last(self, record: type, key: object) -> Any:
        return await last(self._journal, record, key)


async def was_asked_to_leave(journal: Any, allocation_id: str) -> bool:
    """Whether the log holds a request to leave; also for runs that a gateway saved before it knew of such."""
    return await last(journal, scheduler.PreemptRequested, allocation_id) is not None


async def last(journal: Any, record: type, key: object) -> Any:
    """The newest event of a kind about something; None when there is none."""
    name = next(kind.name for kind in codec.kinds() if kind.record is record)
    stored = await journal.last(subjects.control(name, key))
    return codec.decode(stored.body, stored.position).event if stored is not None else None


async def append(journal: Any, draft: Draft) -> int:
    """Store a message; raises `Refused` (503) when the log does not say that it has it."""
    try:
        return int(await journal.append(draft))
    except OutcomeUnknown as error:
        raise unavailable(f"the log does not answer ({error}); try again") from error
