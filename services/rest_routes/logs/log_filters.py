"""Filters of log lines (scheduling spec, section 11)."""

from __future__ import annotations

from typing import Annotated

from det_contracts.problems import invalid
from det_contracts.queries import LogPage
from services.kit import patterns
from services.rest_requests.api_call import UserCall
from services.rest_routes.present import task
from services.rest_routes.tasks.tasks import runs_of
from services.web.query import NOTHING, Instant, Integer, Integers, Ordered, enum_values

LEVELS = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class LinesQuery(Ordered):
    """Query parameters that select log lines."""

    allocation_ids: list[str] = NOTHING
    agent_ids: list[str] = NOTHING
    container_ids: list[str] = NOTHING
    rank_ids: Integers = NOTHING
    levels: Annotated[list[str], enum_values("LOG_LEVEL_", LEVELS)] = NOTHING
    stdtypes: list[str] = NOTHING
    sources: list[str] = NOTHING
    timestamp_before: Instant = None
    timestamp_after: Instant = None
    search_text: str = ""
    regex: str = ""
    after_id: Integer = 0
    before_id: Integer = 0
    from_number: Integer = 0


def log_query(call: UserCall, task_id: str, query: LinesQuery) -> LogPage:
    """Convert the query parameters to a query of the metrics service.

    Raises `Refused` if they are invalid.
    """
    allocations, workers = list(query.allocation_ids), list(query.agent_ids)
    if containers := query.container_ids:
        locations = task.container_locations(containers, runs_of(call, task_id))
        # An unknown container must select nothing; an empty list would select everything.
        allocations += [location[0] for location in locations] or containers
        workers += [location[1] for location in locations]
    if query.regex:
        patterns.search(query.regex)
    return LogPage(
        task_id=task_id,
        after_id=_cursor(query),
        descending=query.order_by,
        allocation_ids=allocations,
        worker_ids=workers,
        ranks=query.rank_ids,
        levels=query.levels,
        stdtypes=query.stdtypes,
        sources=query.sources,
        before_at=query.timestamp_before,
        after_at=query.timestamp_after,
        text=query.search_text,
        regex=query.regex,
        from_number=query.from_number,
    )


def _cursor(query: LinesQuery) -> int:
    """The id to start from: after it in ascending order, before it in descending order."""
    after, before = query.after_id, query.before_id
    wrong = after if query.order_by else before
    if wrong:
        raise invalid("after_id needs ascending order, before_id needs ORDER_BY_DESC")
    return after or before
