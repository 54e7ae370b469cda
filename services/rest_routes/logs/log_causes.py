"""Why a task failed, according to its log: which rank failed first, the error line, and the effects.

In addition to `log_pages.py`, for the web UI and other clients that want the cause in one request.
"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from det_contracts.queries import LogCause, LogPage
from services.catalogue.api_values import format_optional_time, format_time
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_routes.present import cause
from services.rest_routes.tasks.tasks import runs_of
from services.web.routes import Routes

BEHIND, BEFORE = 400, 50
"""Maximum number of a rank's lines that are read after and before its first error."""
NO_RANK = -1
router = Routes()


@router.get("/trials/{trial_id}/logs/cause", ("view", "trial"))
async def of_trial(call: Authenticated, trial_id: int) -> Response:
    """Which rank failed first in the latest run with an error. Null if no line is an error."""
    return call.answer({"cause": await _cause(call, call.catalogue.trial(trial_id).task_id)})


@router.get("/tasks/{task_id}/logs/cause", ("view", "task"))
async def of_task(call: Authenticated, task_id: str) -> Response:
    """Which rank failed first in the latest run with an error. Null if no line is an error."""
    if call.catalogue.trial_of_task(task_id) is None:
        runs_of(call, task_id)
    return call.answer({"cause": await _cause(call, task_id)})


async def _cause(call: UserCall, task_id: str) -> dict[str, Any] | None:
    answer = await call.peers.query(LogCause(task_id))
    if answer is None:
        return None
    rank = NO_RANK if answer["rank"] is None else answer["rank"]
    mine = LogPage(task_id=task_id, allocation_ids=[answer["allocation_id"]], ranks=[rank])
    replace = msgspec.structs.replace
    from_here = replace(mine, after_id=answer["line"] - 1)
    before_here = replace(mine, after_id=answer["line"], descending=True)
    behind = (await call.peers.log_page(from_here, limit=BEHIND)).lines
    before = (await call.peers.log_page(before_here, limit=BEFORE)).lines
    if not behind:
        # The lines were trimmed since the first query.
        return None
    failure_cause = cause.find_cause(behind, before[::-1])
    previous_line = failure_cause.before
    return {
        "allocationId": answer["allocation_id"],
        "agentId": answer["worker_id"] or None,
        "rankId": answer["rank"],
        "words": cause.describe_error(cause.strip_formatting(failure_cause.error_line.text)),
        "first": cause.short_line(failure_cause.first, format_time(failure_cause.first.at)),
        "said": cause.short_line(failure_cause.error_line, format_time(failure_cause.error_line.at)),
        "place": _location(failure_cause.location),
        "before": cause.short_line(previous_line, format_time(previous_line.at)) if previous_line else None,
        "ranks": [_rank(rank_end) for rank_end in answer["ranks"]],
    }


def _location(location: cause.CodeLocation | None) -> dict[str, Any] | None:
    return (
        None
        if location is None
        else {"file": location.file, "line": location.line, "function": location.function}
    )


def _rank(rank_end: dict[str, Any]) -> dict[str, Any]:
    return {
        "rankId": rank_end["rank"],
        "agentId": rank_end["worker_id"] or None,
        "lastTimestamp": format_time(rank_end["last_at"]),
        "failedTimestamp": format_optional_time(rank_end["failed_at"]),
        "line": None if rank_end["line"] is None else str(rank_end["line"]),
    }
