"""Trials (REST spec, section 4)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

from starlette.responses import Response

from det_contracts.commands import KillTrial
from services.catalogue import listing
from services.catalogue.display_state import STATES, trial_state
from services.catalogue.domain import State, Trial
from services.catalogue.peers import Summary
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_routes.present.answers import Trial as Shape
from services.rest_routes.present.answers import page_schema, record_schema
from services.rest_routes.present.trial import trial
from services.rest_routes.trials.workloads import WorkloadsQuery, workloads
from services.web.query import NOTHING, Flag, FromQuery, Paged, enum_value, enum_values
from services.web.routes import Routes

router = Routes()
SORTS = (*listing.TRIAL_SORTS, listing.DURATION)


class TrialsQuery(Paged):
    """GET /experiments/{id}/trials"""

    states: Annotated[list[str], enum_values("STATE_", STATES)] = NOTHING
    sort_by: Annotated[str, enum_value("SORT_BY_", SORTS)] = "ID"
    lean: Flag = False


@router.get("/experiments/{experiment_id}/trials", ("view", "experiment"), **page_schema("trials", Shape))
async def of_experiment(call: Authenticated, experiment_id: int, query: FromQuery[TrialsQuery]) -> Response:
    """A page of an experiment's trials. Our addition `lean` leaves out the statistics of metrics."""
    smaller = call.catalogue.experiment(experiment_id).smaller_is_better
    states, sort, window = query.states, query.sort_by, query.window
    id_page = await call.catalogue.read(
        lambda connection: listing.trial_page(
            connection, experiment_id, states, sort, window, smaller_is_better=smaller
        )
    )

    async def show_page(ids: Sequence[int]) -> list[dict[str, Any]]:
        # No more than these, of an experiment that is not in memory, either.
        page = await call.catalogue.evicted.fetch_trials(ids)
        shown = await show(call, [page.trials[id] for id in ids if id in page.trials], page)
        return [{**shown_trial, "summaryMetrics": {}} for shown_trial in shown] if query.lean else shown

    return await call.answer_list("trials", id_page.ids, show_page, pagination=id_page.span.pagination)


async def show(call: UserCall, records: Sequence[Trial], of: State | None = None) -> list[dict[str, Any]]:
    """Trials, with facts that only other services know; `of` holds their runs and checkpoints."""
    summaries = await call.peers.summaries([record.id for record in records if record.run])
    waiting = {}
    # The scheduler is asked only if something waits, because most lists show what runs or has ended.
    if any(trial_state(record) == "QUEUED" for record in records):
        experiments = {record.experiment_id for record in records}
        waiting = await call.peers.waiting(experiments.pop() if len(experiments) == 1 else None)
    state, now = of or call.catalogue.state, time.time()
    return [
        trial(
            record,
            state,
            summaries.get(record.id, Summary()),
            now=now,
            waiting_reason=waiting.get(record.allocation_id or "", ""),
        )
        for record in records
    ]


@router.get("/trials/{trial_id}", ("view", "trial"), **record_schema("trial", Shape))
async def get(call: Authenticated, trial_id: int) -> Response:
    """One trial."""
    (shown,) = await show(call, [call.catalogue.trial(trial_id)])
    return call.answer({"trial": shown})


@router.post("/trials/{trial_id}/kill", ("control", "trial"))
async def kill(call: Authenticated, trial_id: int) -> Response:
    """Kill a trial immediately. Its experiment continues."""
    await call.peers.command(KillTrial(trial_id=trial_id, user=call.user.username))
    return call.answer({})


@router.get("/trials/{trial_id}/workloads", ("view", "trial"))
async def list_workloads(call: Authenticated, trial_id: int, query: FromQuery[WorkloadsQuery]) -> Response:
    """A trial's training reports, validations and checkpoints."""
    page, pagination = await workloads(call, call.catalogue.trial(trial_id), query)
    return call.answer({"workloads": page, "pagination": pagination})
