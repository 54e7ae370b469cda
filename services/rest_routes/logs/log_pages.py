"""Logs for the web UI: one window at a time in either direction, or the whole log as a file.

The streams in `logs.py` are those of the 0.25 clients.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.responses import Response

from det_contracts.problems import Refused, invalid
from det_contracts.queries import LogFields
from services.kit import patterns
from services.live import follow
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.streaming import Stream
from services.rest_routes.logs.log_filters import LinesQuery, log_query
from services.rest_routes.present import log
from services.rest_routes.present.answers import media_schema
from services.rest_routes.tasks.tasks import runs_of
from services.web.query import Flag, FromQuery, Integer, Limited
from services.web.routes import Routes

PAGE, MAX_PAGE = 200, 1000
"""Default and maximum number of lines in a page."""
router = Routes()


class LogPageQuery(LinesQuery):
    """Query parameters of one window of a log."""

    limit: Integer = PAGE
    whole: Flag = False
    mark: str = ""


class LogFileQuery(LinesQuery, Limited):
    """Query parameters of a log as a file."""


@router.get("/trials/{trial_id}/logs/page", ("view", "trial"))
async def page_of_trial(call: Authenticated, trial_id: int, query: FromQuery[LogPageQuery]) -> Response:
    """Lines after or before a line, or from a number on. Long lines are cut unless `whole` is set.

    `mark` is a regular expression whose matches in the returned lines are listed in `hits`. It does not
    filter.
    """
    return await _page(call, call.catalogue.trial(trial_id).task_id, query)


@router.get("/tasks/{task_id}/logs/page", ("view", "task"))
async def page_of_task(call: Authenticated, task_id: str, query: FromQuery[LogPageQuery]) -> Response:
    """Lines after or before a line, or from a number on. Long lines are cut unless `whole` is set.

    `mark` is a regular expression whose matches in the returned lines are listed in `hits`. It does not
    filter.
    """
    return await _page(call, _existing_task_id(call, task_id), query)


@router.get("/trials/{trial_id}/logs/summary", ("view", "trial"))
async def summary_of_trial(call: Authenticated, trial_id: int) -> Response:
    """The number of lines, the values by which they can be filtered, and where they show a failure."""
    return await _summary(call, call.catalogue.trial(trial_id).task_id)


@router.get("/tasks/{task_id}/logs/summary", ("view", "task"))
async def summary_of_task(call: Authenticated, task_id: str) -> Response:
    """The number of lines, the values by which they can be filtered, and where they show a failure."""
    return await _summary(call, _existing_task_id(call, task_id))


@router.get("/trials/{trial_id}/logs/download", ("view", "trial"), **media_schema("text/plain"))
async def file_of_trial(call: Authenticated, trial_id: int, query: FromQuery[LogFileQuery]) -> Response:
    """All matching lines, as a text file."""
    return await _file(call, call.catalogue.trial(trial_id).task_id, f"trial-{trial_id}", query)


@router.get("/tasks/{task_id}/logs/download", ("view", "task"), **media_schema("text/plain"))
async def file_of_task(call: Authenticated, task_id: str, query: FromQuery[LogFileQuery]) -> Response:
    """All matching lines, as a text file."""
    return await _file(call, _existing_task_id(call, task_id), f"task-{task_id}", query)


def _existing_task_id(call: UserCall, task_id: str) -> str:
    """Return the id if the task exists. Raises `Refused` (404)."""
    if call.catalogue.trial_of_task(task_id) is None:
        runs_of(call, task_id)
    return task_id


async def _page(call: UserCall, task_id: str, query: LogPageQuery) -> Response:
    if not 0 < query.limit <= MAX_PAGE:
        raise invalid(f"limit must be between 1 and {MAX_PAGE}, not {query.limit}")
    mark = patterns.search(query.mark) if query.mark else None
    page = await call.peers.log_page(log_query(call, task_id, query), limit=query.limit)
    return call.answer(
        {
            "lines": [log.page_line(line, whole=query.whole, mark=mark) for line in page.lines],
            "more": page.more,
            "cursor": str(page.cursor),
            "number": page.number,
        }
    )


async def _summary(call: UserCall, task_id: str) -> Response:
    return call.answer(log.summary(await call.peers.query(LogFields(task_id))))


async def _file(call: UserCall, task_id: str, name: str, query: LogFileQuery) -> Response:
    pages = follow.read(call.peers, log_query(call, task_id, query), query.limit)
    # Read the first page now, so that errors are reported before the answer begins.
    first: follow.Lines = await anext(pages, ())
    return Stream(
        _text(first, pages),
        call=call,
        media_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.log"'},
    )


async def _text(first: follow.Lines, pages: AsyncIterator[follow.Lines]) -> AsyncIterator[bytes]:
    yield _rendered(first)
    try:
        async for lines in pages:
            yield _rendered(lines)
    # The answer has begun, and a file that just ends would look complete.
    except Refused as refusal:
        yield f"# The log is incomplete; the rest could not be read: {refusal.problem.message}\n".encode()


def _rendered(lines: follow.Lines) -> bytes:
    return "".join(log.message(line) for line in lines).encode()
