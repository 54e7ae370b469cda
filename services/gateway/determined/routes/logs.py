"""Logs of trials and tasks (REST spec, section 6)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.problems import invalid
from det_contracts.queries import LogFields
from services.catalogue.peers import Line
from services.catalogue.waiting import Fact
from services.gateway.determined.present import log
from services.gateway.determined.routes.log_filters import LinesAsked, asked_for
from services.gateway.determined.routes.tasks import runs_of
from services.gateway.determined.watching import ALREADY, period_s, runs_over, trial_over, watched
from services.gateway.http.visit import Asked, UserVisit, line
from services.live import follow
from services.web.query import Asks, Flag, Followed, Limited

router = APIRouter()


class LogAsked(LinesAsked, Limited):
    """Query parameters of a log stream."""

    follow: Flag = False


@router.get("/trials/{trial_id}/logs")
async def of_trial(visit: Asked, trial_id: int, query: Asks[LogAsked]) -> Response:
    """A trial's log lines. With `follow`, the stream continues until the trial has ended."""
    task_id = visit.catalogue.trial(trial_id).task_id
    return _stream(visit, task_id, trial_id, trial_over(trial_id), query)


@router.get("/tasks/{task_id}/logs")
async def of_task(visit: Asked, task_id: str, query: Asks[LogAsked]) -> Response:
    """A task's log lines. With `follow`, the stream continues until the task has ended."""
    trial = visit.catalogue.trial_of_task(task_id)
    over = trial_over(trial.id) if trial is not None else runs_over([runs_of(visit, task_id)[0].id])
    return _stream(visit, task_id, None, over, query)


@router.get("/trials/{trial_id}/logs/fields")
async def fields_of_trial(visit: Asked, trial_id: int, query: Asks[Followed]) -> Response:
    """The values by which a trial's log can be filtered, updated with `follow` until it has ended."""
    task_id = visit.catalogue.trial(trial_id).task_id
    return _fields(visit, task_id, trial_over(trial_id), query)


@router.get("/tasks/{task_id}/logs/fields")
async def fields_of_task(visit: Asked, task_id: str, query: Asks[Followed]) -> Response:
    """The values by which a task's log can be filtered, updated with `follow` until it has ended."""
    trial = visit.catalogue.trial_of_task(task_id)
    over = trial_over(trial.id) if trial else runs_over([one.id for one in runs_of(visit, task_id)])
    return _fields(visit, task_id, over, query)


def _fields(visit: UserVisit, task_id: str, is_over: Fact, query: Followed) -> Response:
    async def ask() -> dict[str, object]:
        return log.fields(await visit.peers.ask(LogFields(task_id)))

    over = is_over if query.follow else ALREADY
    return visit.stream(watched(visit, ask, over, period_s(query)))


def _stream(visit: UserVisit, task_id: str, trial_id: int | None, is_over: Fact, query: LogAsked) -> Response:
    wanted, limit = asked_for(visit, task_id, query), query.limit
    if limit < 0:
        raise invalid("Limit must be >= 0")
    if query.follow:
        if limit:
            raise invalid("Limit cannot be specified when following")
        if wanted.descending:
            raise invalid("A log can only be followed in ascending order")
    elif limit or wanted.descending or not is_over.holds(visit.catalogue.state):
        # A finished task's whole log goes through the follower, as its newest lines may not be in pages yet.
        return visit.stream(_shown(follow.read(visit.peers, wanted, limit), _written(trial_id)))
    follower = follow.Follower(
        visit.backend.following,
        wanted,
        state=lambda: visit.catalogue.state,
        is_over=is_over,
        recheck=visit.recheck,
        render=_written(trial_id),
        kind=trial_id,
    )
    return visit.stream(follower.lines())


def _written(trial_id: int | None) -> Callable[[Line], bytes]:
    """Returns the encoder of a line: as a trial's, or as a task's."""
    return lambda one: line(log.line(one, trial_id))


async def _shown(
    pages: AsyncIterator[follow.Lines], written: Callable[[Line], bytes]
) -> AsyncIterator[bytes]:
    async for lines in pages:
        yield b"".join([written(one) for one in lines])
