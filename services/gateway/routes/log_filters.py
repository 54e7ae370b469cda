"""Which lines of a log a request asks for (scheduling spec, section 11)."""

from __future__ import annotations

from det_contracts.problems import invalid
from det_contracts.queries import LogPage
from services.gateway.present import task
from services.gateway.routes.tasks import runs_of
from services.gateway.web.visit import UserVisit
from services.kit import patterns

LEVELS = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def asked_for(visit: UserVisit, task_id: str) -> LogPage:
    """The question that the request's parameters make; raises `Refused` for one that makes no sense."""
    params = visit.params
    allocations, workers = params.texts("allocation_ids"), params.texts("agent_ids")
    if wanted := params.texts("container_ids"):
        places = task.places_of(wanted, runs_of(visit, task_id))
        allocations += [place[0] for place in places] or wanted
        workers += [place[1] for place in places]
    if regex := params.text("regex"):
        patterns.search(regex)
    return LogPage(
        task_id=task_id,
        after_id=_cursor(visit),
        descending=params.descending(),
        allocation_ids=allocations,
        worker_ids=workers,
        ranks=params.integers("rank_ids"),
        levels=params.names("levels", "LOG_LEVEL_", LEVELS),
        stdtypes=params.texts("stdtypes"),
        sources=params.texts("sources"),
        before_at=params.instant("timestamp_before"),
        after_at=params.instant("timestamp_after"),
        text=params.text("search_text"),
        regex=regex,
        from_number=params.integer("from_number"),
    )


def _cursor(visit: UserVisit) -> int:
    """Lines are asked for after an id in ascending order, before one in descending order."""
    after, before = visit.params.integer("after_id"), visit.params.integer("before_id")
    wrong = after if visit.params.descending() else before
    if wrong:
        raise invalid("after_id goes with ascending order, before_id with ORDER_BY_DESC")
    return after or before
