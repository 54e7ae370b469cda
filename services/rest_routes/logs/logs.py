"""Logs of trials and tasks (REST spec, section 6)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from starlette.responses import Response

from det_contracts.problems import invalid
from det_contracts.queries import LogFields
from services.catalogue.peers import LogLine
from services.catalogue.waiters import Fact
from services.live import follow
from services.rest_requests.api_call import Authenticated, UserCall, encode_line
from services.rest_routes.change_stream import (
    ALREADY_ENDED,
    period_s,
    runs_ended,
    stream_changes,
    trial_ended,
)
from services.rest_routes.logs.log_filters import LinesQuery, log_query
from services.rest_routes.present import log
from services.rest_routes.tasks.tasks import runs_of
from services.web.query import Flag, Followed, FromQuery, Limited
from services.web.routes import Routes

router = Routes()


class LogStreamQuery(LinesQuery, Limited):
    """Query parameters of a log stream."""

    follow: Flag = False


@router.get("/trials/{trial_id}/logs", ("view", "trial"))
async def of_trial(call: Authenticated, trial_id: int, query: FromQuery[LogStreamQuery]) -> Response:
    """A trial's log lines. With `follow`, the stream continues until the trial has ended."""
    task_id = call.catalogue.trial(trial_id).task_id
    return _stream(call, task_id, trial_id, trial_ended(trial_id), query)


@router.get("/tasks/{task_id}/logs", ("view", "task"))
async def of_task(call: Authenticated, task_id: str, query: FromQuery[LogStreamQuery]) -> Response:
    """A task's log lines. With `follow`, the stream continues until the task has ended."""
    trial = call.catalogue.trial_of_task(task_id)
    end_fact = trial_ended(trial.id) if trial is not None else runs_ended([runs_of(call, task_id)[0].id])
    return _stream(call, task_id, None, end_fact, query)


@router.get("/trials/{trial_id}/logs/fields", ("view", "trial"))
async def fields_of_trial(call: Authenticated, trial_id: int, query: FromQuery[Followed]) -> Response:
    """The values by which a trial's log can be filtered, updated with `follow` until it has ended."""
    task_id = call.catalogue.trial(trial_id).task_id
    return _fields(call, task_id, trial_ended(trial_id), query)


@router.get("/tasks/{task_id}/logs/fields", ("view", "task"))
async def fields_of_task(call: Authenticated, task_id: str, query: FromQuery[Followed]) -> Response:
    """The values by which a task's log can be filtered, updated with `follow` until it has ended."""
    trial = call.catalogue.trial_of_task(task_id)
    end_fact = trial_ended(trial.id) if trial else runs_ended([run.id for run in runs_of(call, task_id)])
    return _fields(call, task_id, end_fact, query)


def _fields(call: UserCall, task_id: str, is_over: Fact, query: Followed) -> Response:
    async def ask() -> dict[str, object]:
        return log.fields(await call.peers.query(LogFields(task_id)))

    end_fact = is_over if query.follow else ALREADY_ENDED
    return call.stream(stream_changes(call, ask, end_fact, period_s(query)))


def _stream(
    call: UserCall, task_id: str, trial_id: int | None, is_over: Fact, query: LogStreamQuery
) -> Response:
    selection, limit = log_query(call, task_id, query), query.limit
    if limit < 0:
        raise invalid("Limit must be >= 0")
    if query.follow:
        if limit:
            raise invalid("Limit cannot be specified when following")
        if selection.descending:
            raise invalid("A log can only be followed in ascending order")
    elif limit or selection.descending or not call.catalogue.waiters.holds(is_over):
        # A finished task's whole log goes through the follower, as its newest lines may not be in pages yet.
        return call.stream(_encode_pages(follow.read(call.peers, selection, limit), _line_encoder(trial_id)))
    follower = follow.Follower(
        call.backend.followed_logs,
        selection,
        user=call.user.username,
        is_over=is_over,
        holds=call.catalogue.waiters.holds,
        recheck=call.recheck,
        render=_line_encoder(trial_id),
        kind=trial_id,
    )
    return call.stream(follower.lines(), passed_on=True)


def _line_encoder(trial_id: int | None) -> Callable[[LogLine], bytes]:
    """Returns the encoder of a line: as a trial's, or as a task's."""
    return lambda line: encode_line(log.line(line, trial_id))


async def _encode_pages(
    pages: AsyncIterator[follow.Lines], encode_record: Callable[[LogLine], bytes]
) -> AsyncIterator[bytes]:
    async for lines in pages:
        yield b"".join([encode_record(line) for line in lines])
