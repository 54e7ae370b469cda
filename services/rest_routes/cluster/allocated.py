"""Historical slot usage, per run and aggregated, as JSON and CSV (REST spec, section 8)."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

from starlette.responses import Response

from det_contracts.problems import invalid
from services.catalogue import resource_allocation, runs
from services.catalogue.domain import Allocation
from services.catalogue.resource_allocation import HeldRun, Period, PeriodSums
from services.catalogue.usage_days import EPOCH
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.streaming import Stream
from services.rest_requests.tables import csv_parts
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
RUNS_PER_PAGE = 1000
"""Number of runs that are read and sent at once."""


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
    pages = _held_runs(call, *_time_range(query))
    entries = ([resource_allocation.raw_entry(run) for run in page] async for page in pages)
    return await call.stream_list("resourceEntries", entries)


@root.get("/resources/allocation/raw", ("read_log", "cluster"), **media_schema("text/csv"))
async def raw_as_csv(call: Authenticated, query: FromQuery[TimeRangeQuery]) -> Response:
    """Every run that held slots in a time range, as CSV."""
    pages = _held_runs(call, *_time_range(query))
    rows = ([resource_allocation.raw_row(run) for run in page] async for page in pages)
    return _csv(call, resource_allocation.RAW_COLUMNS, rows)


@root.get("/resources/allocation/allocations-csv", ("read_log", "cluster"), **media_schema("text/csv"))
async def allocations_as_csv(call: Authenticated, query: FromQuery[TimeRangeQuery]) -> Response:
    """Every run that held slots in a time range, with workspaces and slot hours, as CSV."""
    pages = _held_runs(call, *_time_range(query))
    rows = ([resource_allocation.allocation_row(run) for run in page] async for page in pages)
    return _csv(call, resource_allocation.ALLOCATION_COLUMNS, rows)


@router.get("/resources/allocation/aggregated", ("read_log", "cluster"))
async def aggregated(call: Authenticated, query: FromQuery[PeriodsQuery]) -> Response:
    """Slot seconds of each day or month (UTC) that has any, by user, label and resource pool."""
    period, first, last = _periods(query)
    entries = (
        [resource_allocation.sum_entry(day, sums, period) for day, sums in page.items()]
        async for page in _sums(call, period, first, last)
    )
    return await call.stream_list("resourceEntries", entries)


@root.get("/resources/allocation/aggregated", ("read_log", "cluster"), **media_schema("text/csv"))
async def aggregated_as_csv(call: Authenticated, query: FromQuery[PeriodsQuery]) -> Response:
    """The same as CSV."""
    period, first, last = _periods(query)
    rows = (
        [row for day, sums in page.items() for row in resource_allocation.sum_rows(day, sums, period)]
        async for page in _sums(call, period, first, last)
    )
    return _csv(call, resource_allocation.SUM_COLUMNS, rows)


def _csv(call: UserCall, columns: Sequence[str], rows: AsyncIterator[list[tuple[Any, ...]]]) -> Response:
    return Stream(csv_parts(columns, rows), call=call, media_type="text/csv")


def _time_range(query: TimeRangeQuery) -> tuple[float, float]:
    after, before = query.timestamp_after, query.timestamp_before
    if after is None or before is None:
        raise invalid("timestampAfter and timestampBefore are needed: times like 2023-08-01T12:00:00Z")
    if after > before:
        raise invalid("timestampAfter is later than timestampBefore")
    return after, before


async def _held_runs(call: UserCall, after: float, before: float) -> AsyncIterator[list[HeldRun]]:
    """The runs that held slots in a time range, in order of their start, page by page."""
    now = time.time()
    last: tuple[float, str] | None = None
    while page := await _runs_page(call, after, before, last):
        yield resource_allocation.held_runs(
            call.catalogue.state, page, after, before, now, call.visibility.includes_allocation
        )
        if len(page) < RUNS_PER_PAGE:
            return
        last = runs.start_order(page[-1])
        call.recheck()


async def _runs_page(
    call: UserCall, after: float, before: float, last: tuple[float, str] | None
) -> list[Allocation]:
    page: list[Allocation] = await call.catalogue.read(
        lambda connection: runs.runs_page(connection, after, before, last, RUNS_PER_PAGE)
    )
    return page


def _periods(query: PeriodsQuery) -> tuple[Period, date, date]:
    """The kind of the periods, the first day of the first and the last day of the last one."""
    period: Period = "MONTHLY" if query.period == "MONTHLY" else "DAILY"
    first = _day("startDate", query.start_date, period)
    last = _day("endDate", query.end_date, period)
    if first > last:
        raise invalid("startDate is later than endDate")
    if (last - first).days / (30 if period == "MONTHLY" else 1) > MAX_PERIODS:
        raise invalid(f"from {first} to {last} are more than {MAX_PERIODS} periods: ask for fewer")
    return period, first, resource_allocation.next_period(last, period) - timedelta(days=1)


async def _sums(
    call: UserCall, period: Period, first: date, last: date
) -> AsyncIterator[dict[date, PeriodSums]]:
    """The sums of periods, month by month: on a single day, each experiment may have used slots."""
    now = time.time()
    while first <= last:
        next_month = resource_allocation.next_period(first.replace(day=1), "MONTHLY")
        use = await _use(call, first, min(last, next_month - timedelta(days=1)), now)
        yield await resource_allocation.sum_by_period(
            call.catalogue.state, use.slot_seconds, use.task_owners, period, call.visibility
        )
        first = next_month
        call.recheck()


async def _use(call: UserCall, first: date, last: date, now: float) -> runs.Use:
    days = (first - EPOCH).days, (last - EPOCH).days
    use: runs.Use = await call.catalogue.read(lambda connection: runs.use(connection, *days, now))
    return use


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
