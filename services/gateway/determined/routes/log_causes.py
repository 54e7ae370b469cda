"""Why a task failed, according to its log: which rank failed first, the error line, and the effects.

In addition to `log_pages.py`, for the web UI and other clients that want the cause in one request.
"""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.queries import LogCause, LogPage
from services.catalogue.api_values import instant, maybe_instant
from services.gateway.determined.present import cause
from services.gateway.determined.routes.tasks import runs_of
from services.gateway.http.visit import Asked, UserVisit

BEHIND, BEFORE = 400, 50
"""Maximum number of a rank's lines that are read after and before its first error."""
NO_RANK = -1
router = APIRouter()


@router.get("/trials/{trial_id}/logs/cause")
async def of_trial(visit: Asked, trial_id: int) -> Response:
    """Which rank failed first in the latest run with an error. Null if no line is an error."""
    return visit.answer({"cause": await _cause(visit, visit.catalogue.trial(trial_id).task_id)})


@router.get("/tasks/{task_id}/logs/cause")
async def of_task(visit: Asked, task_id: str) -> Response:
    """Which rank failed first in the latest run with an error. Null if no line is an error."""
    if visit.catalogue.trial_of_task(task_id) is None:
        runs_of(visit, task_id)
    return visit.answer({"cause": await _cause(visit, task_id)})


async def _cause(visit: UserVisit, task_id: str) -> dict[str, Any] | None:
    told = await visit.peers.ask(LogCause(task_id))
    if told is None:
        return None
    rank = NO_RANK if told["rank"] is None else told["rank"]
    mine = LogPage(task_id=task_id, allocation_ids=[told["allocation_id"]], ranks=[rank])
    replace = msgspec.structs.replace
    from_here = replace(mine, after_id=told["line"] - 1)
    up_to_here = replace(mine, after_id=told["line"], descending=True)
    behind = (await visit.peers.log_page(from_here, limit=BEHIND)).lines
    before = (await visit.peers.log_page(up_to_here, limit=BEFORE)).lines
    if not behind:
        # The lines were trimmed since the first query.
        return None
    found = cause.cause(behind, before[::-1])
    led = found.before
    return {
        "allocationId": told["allocation_id"],
        "agentId": told["worker_id"] or None,
        "rankId": told["rank"],
        "words": cause.in_words(cause.plain(found.said.text)),
        "first": cause.shown(found.first, instant(found.first.at)),
        "said": cause.shown(found.said, instant(found.said.at)),
        "place": _place(found.place),
        "before": cause.shown(led, instant(led.at)) if led else None,
        "ranks": [_rank(one) for one in told["ranks"]],
    }


def _place(place: cause.Place | None) -> dict[str, Any] | None:
    return None if place is None else {"file": place.file, "line": place.line, "function": place.function}


def _rank(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "rankId": one["rank"],
        "agentId": one["worker_id"] or None,
        "lastTimestamp": instant(one["last_at"]),
        "failedTimestamp": maybe_instant(one["failed_at"]),
        "line": None if one["line"] is None else str(one["line"]),
    }
