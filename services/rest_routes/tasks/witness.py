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
from det_contracts.problems import Problem, Refused, failed_precondition, invalid, unavailable
from det_contracts.reports import ReportBatch, Series
from services.catalogue.domain import Allocation, Trial
from services.catalogue.rights import authorize
from services.kit.authz.access_check import AccessRequest
from services.kit.log import Draft, NotConfirmed, TooLarge
from services.kit.records import read_event
from services.rest_requests.api_call import UserCall

MAX_REPORT_BYTES = 7 * 1024 * 1024
"""Maximum size of one report. The broker accepts slightly more in one message."""


class Witness:
    """The current run of one trial, for which the caller may speak."""

    def __init__(self, call: UserCall, trial_id: int) -> None:
        """Raise `Refused`: no such trial (404), or the session belongs to another run or user (403)."""
        self.trial: Trial = call.catalogue.trial(trial_id)
        session = call.session()
        allocation = call.catalogue.state.allocations.get(session.allocation)
        if allocation is not None and allocation.trial_id != trial_id:
            message = f"the token is that of {allocation.id}, which does not belong to trial {trial_id}"
            raise Refused(Problem("permission_denied", message))
        authorize(call.catalogue.state, session, AccessRequest("speak", "trial", trial_id))
        self._unmanaged = call.catalogue.experiment(self.trial.experiment_id).unmanaged
        self._catalogue = call.catalogue
        self._journal = call.backend.journal
        self._peers = call.backend.peers
        self._heartbeats = call.backend.heartbeats
        self._key = call.backend.token_key
        self._actor = f"trial:{trial_id}" if session.allocation else f"user:{session.user}"

    @property
    def run(self) -> int:
        """The current run.

        Raises `Refused` (400) before the first one, or if an unmanaged trial was canceled.
        """
        if self._unmanaged and self.trial.own == "CANCELED":
            raise failed_precondition(
                f"trial {self.trial.id} is canceled and accepts no more reports: {self.trial.reason}"
            )
        if not self.trial.run:
            raise failed_precondition(f"trial {self.trial.id} has not started, so it has no run yet")
        return self.trial.run

    @property
    def reporting_run(self) -> int:
        """The run whose reports count. It is 0 before the first run, for results measured elsewhere."""
        return self.run if self._unmanaged or self.trial.run else 0

    async def record_fact(self, event: Any, id: str = "") -> None:
        """State a fact; it is stored when this returns. Repeats with the same `id` are deduplicated."""
        # A script outside the cluster that states something is alive. The heartbeat goes first: it resumes a
        # run that was declared lost, for which the fact then counts.
        if self._unmanaged:
            await self.send_heartbeat()
        await self._append_fact(event, id)

    async def record_fact_and_wait(self, event: Any, id: str = "") -> None:
        """State a fact and wait until lists and pages show it. Raises `Refused` if that takes too long."""
        if self._unmanaged:
            await self.send_heartbeat()
        position = await self._append_fact(event, id)
        await self._catalogue.wait_for_witness(position)

    async def send_heartbeat(self) -> None:
        """Send a heartbeat unless one was sent recently. Raises `Refused` for managed trials."""
        if not self._unmanaged:
            raise failed_precondition(
                f"trial {self.trial.id} is managed: the cluster runs it, and knows its state"
            )
        if self._heartbeats.is_due(self.trial.id, self.run, time.monotonic()):
            await self._peers.publish(subjects.script_heartbeat(self.trial.id), str(self.run).encode())
            self._heartbeats.record_sent(self.trial.id, self.run, time.monotonic())

    async def _append_fact(self, event: Any, id: str = "") -> int:
        """Store a fact in WITNESS; return its position there."""
        if beyond := bounds.limit_problem(event):
            raise invalid(beyond)
        id = self._unpredictable_id(id) if id else os.urandom(16).hex()
        body = codec.encode(event, id=id, actor=self._actor, at=time.time())
        _check_nesting(body)
        try:
            # What readers would skip as damaged must be refused here, while somebody can still be told.
            codec.decode(body, 0)
        except codec.BadRecord as error:
            raise invalid(str(error.__cause__)) from None
        return await append_to_log(self._journal, Draft(subjects.witness_by_rest(self.trial.id), body, id))

    def _unpredictable_id(self, id: str) -> str:
        """Derive a message id that is the same at every gateway and that scripts cannot predict.

        A script could otherwise use the id first and have the real fact dropped as a duplicate.
        """
        return hmac.new(self._key, id.encode(), "sha256").hexdigest()[:32]

    async def report(self, *series: Series) -> int:
        """Store reports of the current run; return their position in REPORTS."""
        if self._unmanaged:
            await self.send_heartbeat()
        search = self._catalogue.submission(self.trial.experiment_id).config["searcher"]
        batch = ReportBatch(
            trial_id=self.trial.id,
            experiment_id=self.trial.experiment_id,
            run=self.reporting_run,
            # Clients of the REST API do not count; metrics recognizes repetitions by their values.
            number=0,
            searcher_metric=search["metric"],
            smaller_is_better=search.get("smaller_is_better", True),
            series=list(series),
        )
        body = msgspec.json.encode(batch)
        if len(body) > MAX_REPORT_BYTES:
            message = f"the metrics have {len(body)} bytes; one report is limited to {MAX_REPORT_BYTES}"
            raise invalid(message)
        _check_nesting(body)
        subject = subjects.reports(batch.trial_id)
        return await append_to_log(self._journal, Draft(subject, body, f"report-{uuid.uuid4().hex}"))

    async def operation(self) -> tuple[searcher.OperationSet | None, bool]:
        """The newest operation, and whether it is finished."""
        newest_operation = await self._last_event(searcher.OperationSet, self.trial.id)
        idled = await self._last_event(searcher.TrialIdled, self.trial.id)
        has_ended = self.trial.ended_at is not None
        return newest_operation, has_ended or (
            newest_operation is not None and idled is not None and idled.seq >= newest_operation.seq
        )

    async def _last_event(self, record: type, key: object) -> Any:
        return await last_event(self._journal, record, key)


def run_of_script(call: UserCall, task_id: str, allocation_id: str = "") -> Allocation | None:
    """The run that a script means: the one named, else its token's, else its unmanaged task's newest."""
    id = allocation_id or call.session().allocation
    allocation = call.catalogue.state.allocations.get(id) if id else unmanaged_run(call, task_id)
    run: Allocation | None = allocation
    return run


def unmanaged_run(call: UserCall, task_id: str) -> Allocation | None:
    """The newest run of an unmanaged trial, whose scripts know only their task."""
    state, trial = call.catalogue.state, call.catalogue.trial_of_task(task_id)
    if trial is None or not state.experiments[trial.experiment_id].unmanaged:
        return None
    run: Allocation | None = state.allocations.get(trial.allocation_id or "")
    return run


def _check_nesting(body: bytes) -> None:
    if is_too_deep(body):
        raise invalid(f"the report is nested too deeply: a value may have {VALUE_LEVELS} levels")


async def was_preempted(journal: Any, allocation_id: str) -> bool:
    """Whether the log has a request to leave. Works even for runs folded by versions that ignored it."""
    return await last_event(journal, scheduler.PreemptRequested, allocation_id) is not None


async def last_event(journal: Any, record: type, key: object) -> Any:
    """The newest event of a kind about a thing; None if there is none."""
    recorded = await last_record(journal, record, key)
    return recorded.event if recorded is not None else None


async def last_record(journal: Any, record: type, key: object) -> Recorded | None:
    """The newest event of a kind about a thing, with its time and position."""
    name = next(kind.name for kind in codec.kinds() if kind.record is record)
    stored = await journal.last(subjects.control(name, key))
    recorded = read_event(stored) if stored is not None else None
    return None if recorded is None or type(recorded.event) is Unknown else recorded


async def append_to_log(journal: Any, draft: Draft) -> int:
    """Store a message; return its position. Raises `Refused` (503) if the log does not confirm it."""
    try:
        return int(await journal.append(draft))
    except TooLarge as error:
        raise invalid(f"this is too large for the log ({error}); send less at once") from error
    except NotConfirmed as error:
        raise unavailable(f"the log did not confirm it ({error}); try again") from error
