"""Use of the cluster, and workers that are away (our addition)."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

import sqlalchemy as sa
from starlette.responses import Response

from det_contracts.problems import invalid
from services.catalogue import runs, usage, usage_days
from services.catalogue.domain import Allocation
from services.rest_requests.api_call import Authenticated
from services.rest_routes.present.agent import live_allocations
from services.rest_routes.present.resource_usage import run_usage
from services.web.query import FromQuery, QueryModel, integer_between
from services.web.routes import Routes

router = Routes()
MAX_DAYS = 366
MAX_RUNS = 1000
"""Maximum number of runs in one answer."""
MAX_SLOT_RUNS = 50_000
"""Maximum number of runs in the timelines of slots; a run counts once for each of its slots."""
RUNS_IN_TURN = 1000
"""Number of runs that are shown before other requests have their turn."""


class DaysQuery(QueryModel):
    """Query parameter: how many days back, by default as many as the route defines."""

    days: Annotated[int | None, integer_between(1, MAX_DAYS)] = None


def _since(query: DaysQuery, default_days: int) -> float:
    days = default_days if query.days is None else query.days
    return time.time() - days * usage_days.DAY_S


@router.get("/cluster/slots", ("logged_in", "cluster"))
async def strips(call: Authenticated, query: FromQuery[DaysQuery]) -> Response:
    """What ran on each slot in recent days, at most 50,000 runs of slots."""
    since, timelines = _since(query, 1), usage.SlotTimelines()
    held = await call.catalogue.read(lambda connection: _runs_since(connection, since))
    is_visible = call.visibility.includes_allocation
    for number, run in enumerate(held, 1):
        timelines.add(call.catalogue.state, run, is_visible)
        if number % RUNS_IN_TURN == 0:
            await asyncio.sleep(0)
    return call.answer({"slots": timelines.slots()})


def _runs_since(connection: sa.Connection, since: float) -> list[Allocation]:
    held, slots = list[Allocation](), 0
    for run in runs.runs_since(connection, since):
        held.append(run)
        slots += sum(len(part.slots) for part in run.members)
        if slots > MAX_SLOT_RUNS:
            raise invalid(
                f"more than {MAX_SLOT_RUNS:,} runs held slots in these days: ask for fewer days, or read "
                "all of them as a table from /resources/allocation/allocations-csv"
            )
    return sorted(held, key=runs.start_order)


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
    departed = usage.DepartedWorkers(call.catalogue.state, _since(query, 7))
    await call.catalogue.read(departed.add_last_runs)
    return call.answer({"agents": departed.shown(call.catalogue.state, call.visibility.includes_allocation)})
