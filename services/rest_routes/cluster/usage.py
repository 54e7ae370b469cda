"""Use of the cluster, and workers that are away (our addition)."""

from __future__ import annotations

import time
from typing import Annotated

from starlette.responses import Response

from services.catalogue import runs, usage, usage_days
from services.catalogue.domain import Allocation
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_routes.present.agent import live_allocations
from services.rest_routes.present.resource_usage import run_usage
from services.web.query import FromQuery, QueryModel, integer_between
from services.web.routes import Routes

router = Routes()
MAX_DAYS = 366
MAX_RUNS = 1000
"""Maximum number of runs in one answer."""


class DaysQuery(QueryModel):
    """Query parameter: how many days back, by default as many as the route defines."""

    days: Annotated[int | None, integer_between(1, MAX_DAYS)] = None


def _since(query: DaysQuery, default_days: int) -> float:
    days = default_days if query.days is None else query.days
    return time.time() - days * usage_days.DAY_S


async def _allocations_since(call: UserCall, since: float) -> list[Allocation]:
    allocations: list[Allocation] = await call.catalogue.read(
        lambda connection: runs.runs_between(connection, since)
    )
    return allocations


@router.get("/cluster/slots", ("logged_in", "cluster"))
async def strips(call: Authenticated, query: FromQuery[DaysQuery]) -> Response:
    """What ran on each slot in recent days."""
    allocations = await _allocations_since(call, _since(query, 1))
    return call.answer(
        {
            "slots": usage.slot_timelines(
                call.catalogue.state, allocations, call.visibility.includes_allocation
            )
        }
    )


@router.get("/cluster/usage", ("read_log", "cluster"))
async def by_day(call: Authenticated, query: FromQuery[DaysQuery]) -> Response:
    """Slot hours by day, user and label."""
    # Whole days (UTC), the first one, too.
    first, now = usage_days.day_number(_since(query, 30)), time.time()
    used = await call.catalogue.read(lambda connection: runs.use(connection, first, None, now))
    daily_usage = usage.usage_by_day(call.catalogue.state, used.slot_seconds, used.task_owners)
    return call.answer({"usage": daily_usage})


@router.get("/cluster/use", ("logged_in", "cluster"))
async def use(call: Authenticated) -> Response:
    """The processors, memory and GPUs that runs use, as last sampled by the workers."""
    state, visibility = call.catalogue.state, call.visibility
    live = [run for run in live_allocations(state) if run.trial_id is not None and run.members]
    live = visibility.filter_visible(lambda run: visibility.includes_run(run.id), live)[:MAX_RUNS]
    trial_summaries = await call.peers.summaries(run.trial_id for run in live if run.trial_id is not None)
    summaries = {id: summary.summary for id, summary in trial_summaries.items()}
    return call.answer(
        {"uses": [run_usage(run, state, summaries.get(run.trial_id or 0, {})) for run in live]}
    )


@router.get("/cluster/away", ("logged_in", "cluster"))
async def away(call: Authenticated, query: FromQuery[DaysQuery]) -> Response:
    """Workers that left or were lost in recent days."""
    since = _since(query, 7)
    allocations = await _allocations_since(call, since - usage.LAST_RUN_MARGIN_S)
    return call.answer(
        {
            "agents": usage.departed_workers(
                call.catalogue.state, allocations, since, call.visibility.includes_allocation
            )
        }
    )
