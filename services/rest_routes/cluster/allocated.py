"""Historical slot usage, per run and aggregated, as JSON and CSV (REST spec, section 8)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Annotated

from starlette.responses import Response

from det_contracts.problems import invalid
from services.catalogue import resource_allocation, runs
from services.catalogue.resource_allocation import HeldRun, Period, PeriodSums
from services.catalogue.usage_days import EPOCH
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_routes.present.answers import media_schema
from services.web.query import FromQuery, Instant, QueryModel, enum_value
from services.web.routes import Routes

router = Routes()
root = Routes()
PERIODS = ("DAILY", "MONTHLY")
DATE_FORMATS = {"DAILY": re.compile(r"\d{4}-\d\d-\d\d"), "MONTHLY": re.compile(r"\d{4}-\d\d(-\d\d)?")}
EXAMPLES = {"DAILY": "2023-08-01", "MONTHLY": "2023-08"}
MAX_PERIODS = 4000
"""Maximum number of periods in one answer: ten years, day by day."""


class TimeRangeQuery(QueryModel):
    """A time range."""

    timestamp_after: Instant = None
    timestamp_before: Instant = None


class PeriodsQuery(QueryModel):
    """The first and last day, or month, to aggregate."""

    start_date: str = ""
    end_date: str = ""
    period: Annotated[str, enum_value("RESOURCE_ALLOCATION_AGGREGATION_PERIOD_", PERIODS)] = "DAILY"


@router.get("/resources/allocation/raw", ("read_log", "cluster"))
async def raw(call: Authenticated, query: FromQuery[TimeRangeQuery]) -> Response:
    """Every run that held slots in a time range, and for how long within it."""
    held_runs = await _runs_in_range(call, query)
    entries = await asyncio.to_thread(lambda: [resource_allocation.raw_entry(run) for run in held_runs])
    return call.answer({"resourceEntries": entries})


@root.get("/resources/allocation/raw", ("read_log", "cluster"), **media_schema("text/csv"))
async def raw_as_csv(call: Authenticated, query: FromQuery[TimeRangeQuery]) -> Response:
    """Every run that held slots in a time range, as CSV."""
    return await _csv(resource_allocation.raw_csv, await _runs_in_range(call, query))


@root.get("/resources/allocation/allocations-csv", ("read_log", "cluster"), **media_schema("text/csv"))
async def allocations_as_csv(call: Authenticated, query: FromQuery[TimeRangeQuery]) -> Response:
    """Every run that held slots in a time range, with workspaces and slot hours, as CSV."""
    return await _csv(resource_allocation.allocations_csv, await _runs_in_range(call, query))


@router.get("/resources/allocation/aggregated", ("read_log", "cluster"))
async def aggregated(call: Authenticated, query: FromQuery[PeriodsQuery]) -> Response:
    """Slot seconds of each day or month (UTC) that has any, by user, label and resource pool."""
    period, sums = await _sums_by_period(call, query)
    entries = [
        resource_allocation.sum_entry(first, period_sums, period) for first, period_sums in sums.items()
    ]
    return call.answer({"resourceEntries": entries})


@root.get("/resources/allocation/aggregated", ("read_log", "cluster"), **media_schema("text/csv"))
async def aggregated_as_csv(call: Authenticated, query: FromQuery[PeriodsQuery]) -> Response:
    """The same as CSV."""
    period, sums = await _sums_by_period(call, query)
    return Response(resource_allocation.sums_csv(sums, period), media_type="text/csv")


async def _runs_in_range(call: UserCall, query: TimeRangeQuery) -> list[HeldRun]:
    after, before = query.timestamp_after, query.timestamp_before
    if after is None or before is None:
        raise invalid("timestampAfter and timestampBefore are needed: times like 2023-08-01T12:00:00Z")
    if after > before:
        raise invalid("timestampAfter is later than timestampBefore")
    return await _runs_between(call, after, before)


async def _sums_by_period(call: UserCall, query: PeriodsQuery) -> tuple[Period, dict[date, PeriodSums]]:
    period: Period = "MONTHLY" if query.period == "MONTHLY" else "DAILY"
    first = _day("startDate", query.start_date, period)
    last = _day("endDate", query.end_date, period)
    if first > last:
        raise invalid("startDate is later than endDate")
    if (last - first).days / (30 if period == "MONTHLY" else 1) > MAX_PERIODS:
        raise invalid(f"from {first} to {last} are more than {MAX_PERIODS} periods: ask for fewer")
    days = (first - EPOCH).days, (resource_allocation.next_period(last, period) - EPOCH).days - 1
    now = time.time()
    use = await call.catalogue.read(lambda connection: runs.use(connection, *days, now))
    return period, await resource_allocation.sum_by_period(
        call.catalogue.state, use.slot_seconds, use.task_owners, period, call.visibility
    )


def _day(name: str, text: str, period: Period) -> date:
    """The first day of the period that a text names. Raises `Refused` (400)."""
    try:
        if not DATE_FORMATS[period].fullmatch(text):
            raise ValueError(text)
        day = datetime.strptime(text[:10] if period == "DAILY" else text[:7] + "-01", "%Y-%m-%d")
        # The next period would be beyond what Python's dates hold.
        if day.year == date.max.year:
            raise ValueError(text)
    except ValueError:
        raise invalid(f"{name} must be like {EXAMPLES[period]}, not '{text[:40]}'") from None
    return day.replace(tzinfo=UTC).date()


async def _runs_between(call: UserCall, after: float, before: float) -> list[HeldRun]:
    allocations = await call.catalogue.read(lambda connection: runs.runs_between(connection, after, before))
    return await resource_allocation.held_runs(
        call.catalogue.state, allocations, after, before, time.time(), call.visibility.includes_allocation
    )


async def _csv(table: Callable[[list[HeldRun]], str], runs: list[HeldRun]) -> Response:
    # Runs in a thread: hundreds of thousands of rows take seconds.
    return Response(await asyncio.to_thread(table, runs), media_type="text/csv")
