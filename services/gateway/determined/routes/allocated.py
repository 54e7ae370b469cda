"""Historical slot usage, per run and aggregated, as JSON and CSV (REST spec, section 8)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.problems import invalid
from services.catalogue import allocated, runs
from services.catalogue.allocated import Held, Period, Sums
from services.gateway.http.visit import Asked, UserVisit
from services.web.query import Asking, Asks, Instant, one_of

router = APIRouter()
root = APIRouter()
PERIODS = ("DAILY", "MONTHLY")
FORMS = {"DAILY": re.compile(r"\d{4}-\d\d-\d\d"), "MONTHLY": re.compile(r"\d{4}-\d\d(-\d\d)?")}
EXAMPLES = {"DAILY": "2023-08-01", "MONTHLY": "2023-08"}
MOST_PERIODS = 4000
"""Maximum number of periods in one answer: ten years, day by day."""


class TimeAsked(Asking):
    """A time range."""

    timestamp_after: Instant = None
    timestamp_before: Instant = None


class PeriodsAsked(Asking):
    """The first and last day, or month, to aggregate."""

    start_date: str = ""
    end_date: str = ""
    period: Annotated[str, one_of("RESOURCE_ALLOCATION_AGGREGATION_PERIOD_", PERIODS)] = "DAILY"


@router.get("/resources/allocation/raw")
async def raw(visit: Asked, query: Asks[TimeAsked]) -> Response:
    """Every run that held slots in a time range, and for how long within it."""
    found = await _in_time(visit, query)
    entries = await asyncio.to_thread(lambda: [allocated.raw_entry(one) for one in found])
    return visit.answer({"resourceEntries": entries})


@root.get("/resources/allocation/raw")
async def raw_as_csv(visit: Asked, query: Asks[TimeAsked]) -> Response:
    """Every run that held slots in a time range, as CSV."""
    return await _csv(allocated.raw_csv, await _in_time(visit, query))


@root.get("/resources/allocation/allocations-csv")
async def allocations_as_csv(visit: Asked, query: Asks[TimeAsked]) -> Response:
    """Every run that held slots in a time range, with workspaces and slot hours, as CSV."""
    return await _csv(allocated.allocations_csv, await _in_time(visit, query))


@router.get("/resources/allocation/aggregated")
async def aggregated(visit: Asked, query: Asks[PeriodsAsked]) -> Response:
    """Slot seconds of each day or month (UTC) that has any, by user, label and resource pool."""
    period, sums = await _summed(visit, query)
    entries = [allocated.sum_entry(first, one, period) for first, one in sums.items()]
    return visit.answer({"resourceEntries": entries})


@root.get("/resources/allocation/aggregated")
async def aggregated_as_csv(visit: Asked, query: Asks[PeriodsAsked]) -> Response:
    """The same as CSV."""
    period, sums = await _summed(visit, query)
    return Response(allocated.sums_csv(sums, period), media_type="text/csv")


async def _in_time(visit: UserVisit, query: TimeAsked) -> list[Held]:
    after, before = query.timestamp_after, query.timestamp_before
    if after is None or before is None:
        raise invalid("timestampAfter and timestampBefore are needed: times like 2023-08-01T12:00:00Z")
    if after > before:
        raise invalid("timestampAfter is later than timestampBefore")
    return await _held(visit, after, before)


async def _summed(visit: UserVisit, query: PeriodsAsked) -> tuple[Period, dict[date, Sums]]:
    period: Period = "MONTHLY" if query.period == "MONTHLY" else "DAILY"
    first = _day("startDate", query.start_date, period)
    last = _day("endDate", query.end_date, period)
    if first > last:
        raise invalid("startDate is later than endDate")
    if (last - first).days / (30 if period == "MONTHLY" else 1) > MOST_PERIODS:
        raise invalid(f"from {first} to {last} are more than {MOST_PERIODS} periods: ask for fewer")
    after, before = allocated.midnight(first), allocated.midnight(allocated.following(last, period))
    now = time.time()
    used = await visit.catalogue.read(lambda connection: runs.used(connection, after, before, now))
    seen = visit.sight.experiment
    return period, await allocated.summed(visit.catalogue.state, used, period, seen)


def _day(name: str, text: str, period: Period) -> date:
    """The first day of the period that a text names. Raises `Refused` (400)."""
    try:
        if not FORMS[period].fullmatch(text):
            raise ValueError(text)
        day = datetime.strptime(text[:10] if period == "DAILY" else text[:7] + "-01", "%Y-%m-%d")
        if day.year == date.max.year:
            raise ValueError(text)
    except ValueError:
        raise invalid(f"{name} must be like {EXAMPLES[period]}, not '{text[:40]}'") from None
    return day.replace(tzinfo=UTC).date()


async def _held(visit: UserVisit, after: float, before: float) -> list[Held]:
    found = await visit.catalogue.read(lambda connection: runs.held(connection, after, before))
    return await allocated.held(visit.catalogue.state, found, after, before, time.time(), visit.sight.held)


async def _csv(table: Callable[[list[Held]], str], runs: list[Held]) -> Response:
    # Runs in a thread: hundreds of thousands of rows take seconds.
    return Response(await asyncio.to_thread(table, runs), media_type="text/csv")
