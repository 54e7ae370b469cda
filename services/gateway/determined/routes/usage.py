"""Use of the cluster, and workers that are away (our addition)."""

from __future__ import annotations

import time

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.problems import invalid
from services.catalogue import runs, usage
from services.catalogue.domain import Allocation
from services.gateway.determined.present.agent import live_allocations
from services.gateway.determined.present.use import used
from services.gateway.http.visit import Asked, UserVisit
from services.web.query import Asking, Asks, Integer

router = APIRouter()
MOST_DAYS = 366
MOST_RUNS = 1000
"""Maximum number of runs in one answer."""


class DaysAsked(Asking):
    """Query parameter: how many days back, by default as many as the route defines."""

    days: Integer | None = None


def _since(query: DaysAsked, default_days: int) -> float:
    days = default_days if query.days is None else query.days
    if not 1 <= days <= MOST_DAYS:
        raise invalid(f"days must be from 1 to {MOST_DAYS}, not {days}")
    return time.time() - days * runs.DAY_S


async def _held(visit: UserVisit, since: float) -> list[Allocation]:
    found: list[Allocation] = await visit.catalogue.read(lambda connection: runs.held(connection, since))
    return found


@router.get("/cluster/slots")
async def strips(visit: Asked, query: Asks[DaysAsked]) -> Response:
    """What ran on each slot in recent days."""
    found = await _held(visit, _since(query, 1))
    return visit.answer({"slots": usage.strips(visit.catalogue.state, found, visit.sight.held)})


@router.get("/cluster/usage")
async def by_day(visit: Asked, query: Asks[DaysAsked]) -> Response:
    """Slot hours by day, user and label."""
    since, now = _since(query, 30), time.time()
    used = await visit.catalogue.read(lambda connection: runs.used(connection, since, runs.STILL, now))
    found = usage.by_day(visit.catalogue.state, used)
    return visit.answer({"usage": found})


@router.get("/cluster/use")
async def use(visit: Asked) -> Response:
    """The processors, memory and GPUs that runs use, as last sampled by the workers."""
    state, sight = visit.catalogue.state, visit.sight
    live = [run for run in live_allocations(state) if run.trial_id is not None and run.members]
    live = sight.only(lambda run: sight.run(run.id), live)[:MOST_RUNS]
    known = await visit.peers.summaries(run.trial_id for run in live if run.trial_id is not None)
    summaries = {id: one.summary for id, one in known.items()}
    return visit.answer({"uses": [used(run, state, summaries.get(run.trial_id or 0, {})) for run in live]})


@router.get("/cluster/away")
async def away(visit: Asked, query: Asks[DaysAsked]) -> Response:
    """Workers that left or were lost in recent days."""
    since = _since(query, 7)
    found = await _held(visit, since - usage.BEFORE_GOING_S)
    return visit.answer({"agents": usage.away(visit.catalogue.state, found, since, visit.sight.held)})
