"""States facts on behalf of scripts that use the REST API instead of the message bus.

These are scripts with another SDK than ours, and users' own programs. Their facts pass through the same
intake into the same log, as the same events.
"""

from __future__ import annotations

import hmac
import os
import time
import uuid
from typing import Any

import msgspec

from det_contracts import bounds, codec, subjects
from det_contracts.envelope import Recorded, Unknown
from det_contracts.events import scheduler, searcher
from det_contracts.nesting import VALUE_LEVELS, is_too_deep
from det_contracts.problems import Problem, Refused, invalid, precondition, unavailable
from det_contracts.reports import ReportBatch, Series
from services.catalogue.domain import Allocation, Trial
from services.catalogue.rights import judge
from services.gateway.http.visit import UserVisit
from services.kit.authz.judge import Wish
from services.kit.log import Draft, NotConfirmed, TooLarge
from services.kit.records import read_event

MOST_BYTES = 7 * 1024 * 1024
"""Maximum size of one report. The broker accepts slightly more in one message."""


class Witness:
    """The current run of one trial, for which the caller may speak."""

    def __init__(self, visit: UserVisit, trial_id: int) -> None:
        """Raise `Refused`: no such trial (404), or the session belongs to another run or user (403)."""
        self.trial: Trial = visit.catalogue.trial(trial_id)
        session = visit.session()
        allocation = visit.catalogue.state.allocations.get(session.allocation)
        if allocation is not None and allocation.trial_id != trial_id:
            message = f"the token is that of {allocation.id}, which does not belong to trial {trial_id}"
            raise Refused(Problem("permission_denied", message))
        judge(visit.catalogue.state, session, Wish("speak", "trial", trial_id))
        self._unmanaged = visit.catalogue.experiment(self.trial.experiment_id).unmanaged
        self._catalogue = visit.catalogue
        self._journal = visit.backend.journal
        self._peers = visit.backend.peers
        self._beats = visit.backend.beats
        self._key = visit.backend.token_key
        self._actor = f"trial:{trial_id}" if session.allocation else f"user:{session.user}"

    @property
    def run(self) -> int:
        """The current run.

        Raises `Refused` (400) before the first one, or if an unmanaged trial was canceled.
        """
        if self._unmanaged and self.trial.own == "CANCELED":
            raise precondition(
                f"trial {self.trial.id} is canceled and accepts no more reports: {self.trial.reason}"
            )
        if not self.trial.run:
            raise precondition(f"trial {self.trial.id} has not started, so it has no run yet")
        return self.trial.run

    @property
    def reporting_run(self) -> int:
        """The run whose reports count. It is 0 before the first run, for results measured elsewhere."""
        return self.run if self._unmanaged or self.trial.run else 0

    async def state(self, event: Any, id: str = "") -> None:
        """State a fact; it is stored when this returns. Repeats with the same `id` are deduplicated."""
        if self._unmanaged:
            await self.beat()
        await self._state(event, id)

    async def state_for_all_to_see(self, event: Any, id: str = "") -> None:
        """State a fact and wait until lists and pages show it. Raises `Refused` if that takes too long."""
        if self._unmanaged:
            await self.beat()
        position = await self._state(event, id)
        await self._catalogue.reach_stated(position)

    async def beat(self) -> None:
        """Send a heartbeat unless one was sent recently. Raises `Refused` for managed trials."""
        if not self._unmanaged:
            raise precondition(f"trial {self.trial.id} is managed: the cluster runs it, and knows its state")
        if self._beats.is_due(self.trial.id, self.run, time.monotonic()):
            await self._peers.say(subjects.alive(self.trial.id), str(self.run).encode())
            self._beats.note(self.trial.id, self.run, time.monotonic())

    async def _state(self, event: Any, id: str = "") -> int:
        """Store a fact in WITNESS; return its position there."""
        if beyond := bounds.beyond_limits(event):
            raise invalid(beyond)
        id = self._unguessable(id) if id else os.urandom(16).hex()
        body = codec.encode(event, id=id, actor=self._actor, at=time.time())
        _check(body)
        try:
            codec.decode(body, 0)
        except codec.BadRecord as error:
            raise invalid(str(error.__cause__)) from None
        return await append(self._journal, Draft(subjects.witness_by_rest(self.trial.id), body, id))

    def _unguessable(self, id: str) -> str:
        """Derive a message id that is the same at every gateway and that scripts cannot predict.

        A script could otherwise use the id first and have the real fact dropped as a duplicate.
        """
        return hmac.new(self._key, id.encode(), "sha256").hexdigest()[:32]

    async def report(self, *series: Series) -> int:
        """Store reports of the current run; return their position in REPORTS."""
        if self._unmanaged:
            await self.beat()
        search = self._catalogue.submission(self.trial.experiment_id).config["searcher"]
        batch = ReportBatch(
            trial_id=self.trial.id,
            experiment_id=self.trial.experiment_id,
            run=self.reporting_run,
            number=0,
            searcher_metric=search["metric"],
            smaller_is_better=search.get("smaller_is_better", True),
            series=list(series),
        )
        body = msgspec.json.encode(batch)
        if len(body) > MOST_BYTES:
            message = f"the metrics have {len(body)} bytes; one report is limited to {MOST_BYTES}"
            raise Refused(Problem("exhausted", message))
        _check(body)
        subject = subjects.reports(batch.trial_id)
        return await append(self._journal, Draft(subject, body, f"report-{uuid.uuid4().hex}"))

    async def operation(self) -> tuple[searcher.OperationSet | None, bool]:
        """The newest operation, and whether it is finished."""
        newest = await self._last(searcher.OperationSet, self.trial.id)
        idled = await self._last(searcher.TrialIdled, self.trial.id)
        over = self.trial.ended_at is not None
        return newest, over or (newest is not None and idled is not None and idled.seq >= newest.seq)

    async def _last(self, record: type, key: object) -> Any:
        return await last(self._journal, record, key)


def run_spoken_for(visit: UserVisit, task_id: str, allocation_id: str = "") -> Allocation | None:
    """The run that a script means: the one named, else its token's, else its unmanaged task's newest."""
    id = allocation_id or visit.session().allocation
    found = visit.catalogue.state.allocations.get(id) if id else run_outside(visit, task_id)
    known: Allocation | None = found
    return known


def run_outside(visit: UserVisit, task_id: str) -> Allocation | None:
    """The newest run of an unmanaged trial, whose scripts know only their task."""
    state, trial = visit.catalogue.state, visit.catalogue.trial_of_task(task_id)
    if trial is None or not state.experiments[trial.experiment_id].unmanaged:
        return None
    known: Allocation | None = state.allocations.get(trial.allocation_id or "")
    return known


def _check(body: bytes) -> None:
    if is_too_deep(body):
        raise invalid(f"the report is nested too deeply: a value may have {VALUE_LEVELS} levels")


async def was_asked_to_leave(journal: Any, allocation_id: str) -> bool:
    """Whether the log has a request to leave. Works even for runs folded by versions that ignored it."""
    return await last(journal, scheduler.PreemptRequested, allocation_id) is not None


async def last(journal: Any, record: type, key: object) -> Any:
    """The newest event of a kind about a thing; None if there is none."""
    found = await newest(journal, record, key)
    return found.event if found is not None else None


async def newest(journal: Any, record: type, key: object) -> Recorded | None:
    """The newest event of a kind about a thing, with its time and position."""
    name = next(kind.name for kind in codec.kinds() if kind.record is record)
    stored = await journal.last(subjects.control(name, key))
    recorded = read_event(stored) if stored is not None else None
    return None if recorded is None or type(recorded.event) is Unknown else recorded


async def append(journal: Any, draft: Draft) -> int:
    """Store a message; return its position. Raises `Refused` (503) if the log does not confirm it."""
    try:
        return int(await journal.append(draft))
    except TooLarge as error:
        raise invalid(f"this is too large for the log ({error}); send less at once") from error
    except NotConfirmed as error:
        raise unavailable(f"the log did not confirm it ({error}); try again") from error
