"""Logs as a page shows them: a window at a time, in either direction, and whole as a file.

Beside the streams of `logs.py`, which are those of the 0.25 clients.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.problems import Refused, invalid
from det_contracts.queries import LogFields
from services.gateway.determined.present import log
from services.gateway.determined.routes.log_filters import LinesAsked, asked_for
from services.gateway.determined.routes.tasks import runs_of
from services.gateway.http.streaming import Stream
from services.gateway.http.visit import Asked, UserVisit
from services.kit import patterns
from services.live import follow
from services.web.query import Asks, Flag, Integer, Limited

PAGE, LONGEST_PAGE = 200, 1000
"""Lines of a page, where nothing else is asked for, and at most."""
router = APIRouter()


class PageAsked(LinesAsked):
    """A window of a log."""

    limit: Integer = PAGE
    whole: Flag = False
    mark: str = ""


class FileAsked(LinesAsked, Limited):
    """A log as a file."""


@router.get("/trials/{trial_id}/logs/page")
async def page_of_trial(visit: Asked, trial_id: int, query: Asks[PageAsked]) -> Response:
    """Lines behind or before a line, or from a number on; long ones are cut unless `whole` is asked for.

    `mark` is a regular expression that is only looked for in the lines found: `hits` tells where.
    """
    return await _page(visit, visit.catalogue.trial(trial_id).task_id, query)


@router.get("/tasks/{task_id}/logs/page")
async def page_of_task(visit: Asked, task_id: str, query: Asks[PageAsked]) -> Response:
    """Lines behind or before a line, or from a number on; long ones are cut unless `whole` is asked for.

    `mark` is a regular expression that is only looked for in the lines found: `hits` tells where.
    """
    return await _page(visit, _known(visit, task_id), query)


@router.get("/trials/{trial_id}/logs/summary")
async def summary_of_trial(visit: Asked, trial_id: int) -> Response:
    """How many lines there are, what they differ in, and where they tell of a failure."""
    return await _summary(visit, visit.catalogue.trial(trial_id).task_id)


@router.get("/tasks/{task_id}/logs/summary")
async def summary_of_task(visit: Asked, task_id: str) -> Response:
    """How many lines there are, what they differ in, and where they tell of a failure."""
    return await _summary(visit, _known(visit, task_id))


@router.get("/trials/{trial_id}/logs/download")
async def file_of_trial(visit: Asked, trial_id: int, query: Asks[FileAsked]) -> Response:
    """All lines that fit, as a text file."""
    return await _file(visit, visit.catalogue.trial(trial_id).task_id, f"trial-{trial_id}", query)


@router.get("/tasks/{task_id}/logs/download")
async def file_of_task(visit: Asked, task_id: str, query: Asks[FileAsked]) -> Response:
    """All lines that fit, as a text file."""
    return await _file(visit, _known(visit, task_id), f"task-{task_id}", query)


def _known(visit: UserVisit, task_id: str) -> str:
    """The id of a task that exists; raises `Refused` (404)."""
    if visit.catalogue.trial_of_task(task_id) is None:
        runs_of(visit, task_id)
    return task_id


async def _page(visit: UserVisit, task_id: str, query: PageAsked) -> Response:
    if not 0 < query.limit <= LONGEST_PAGE:
        raise invalid(f"limit must be between 1 and {LONGEST_PAGE}, not {query.limit}")
    mark = patterns.search(query.mark) if query.mark else None
    found = await visit.peers.log_page(asked_for(visit, task_id, query), limit=query.limit)
    return visit.answer(
        {
            "lines": [log.shown(line, whole=query.whole, mark=mark) for line in found.lines],
            "more": found.more,
            "cursor": str(found.cursor),
            "number": found.number,
        }
    )


async def _summary(visit: UserVisit, task_id: str) -> Response:
    return visit.answer(log.summary(await visit.peers.ask(LogFields(task_id))))


async def _file(visit: UserVisit, task_id: str, name: str, query: FileAsked) -> Response:
    pages = follow.read(visit.peers, asked_for(visit, task_id, query), query.limit)
    # Whatever is wrong shows itself before the answer begins.
    first: follow.Lines = await anext(pages, ())
    return Stream(
        _text(first, pages),
        media_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.log"'},
    )


async def _text(first: follow.Lines, pages: AsyncIterator[follow.Lines]) -> AsyncIterator[bytes]:
    yield _rendered(first)
    try:
        async for lines in pages:
            yield _rendered(lines)
    except Refused as refusal:
        yield f"# The log ends here, but not in truth: {refusal.problem.message}\n".encode()


def _rendered(lines: follow.Lines) -> bytes:
    return "".join(log.message(line) for line in lines).encode()
