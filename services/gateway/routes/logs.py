"""Logs of trials and tasks (REST spec, section 6)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.problems import invalid
from det_contracts.queries import LogFields
from services.gateway import follow
from services.gateway.domain import State
from services.gateway.present import log
from services.gateway.routes.log_filters import asked_for
from services.gateway.routes.tasks import runs_of
from services.gateway.watching import period_s, watched
from services.gateway.web.visit import Asked, UserVisit

router = APIRouter()


@router.get("/trials/{trial_id}/logs")
async def of_trial(visit: Asked, trial_id: int) -> Response:
    """A trial's lines, with `follow` until the trial has ended; all of them once it has."""
    task_id = visit.catalogue.trial(trial_id).task_id
    return _stream(visit, task_id, trial_id, lambda state: state.trials[trial_id].ended_at is not None)


@router.get("/tasks/{task_id}/logs")
async def of_task(visit: Asked, task_id: str) -> Response:
    """A task's lines, with `follow` until the task has ended; all of them once it has."""
    trial = visit.catalogue.trial_of_task(task_id)
    if trial is None:
        first = runs_of(visit, task_id)[0]
        return _stream(visit, task_id, None, lambda state: first.id not in state.live)
    return _stream(visit, task_id, None, lambda state: state.trials[trial.id].ended_at is not None)


@router.get("/trials/{trial_id}/logs/fields")
async def fields_of_trial(visit: Asked, trial_id: int) -> Response:
    """What a trial's lines differ in, with `follow` until the trial has ended."""
    task_id = visit.catalogue.trial(trial_id).task_id
    return _fields(visit, task_id, lambda state: state.trials[trial_id].ended_at is not None)


@router.get("/tasks/{task_id}/logs/fields")
async def fields_of_task(visit: Asked, task_id: str) -> Response:
    """What a task's lines differ in, with `follow` until the task has ended."""
    if visit.catalogue.trial_of_task(task_id) is None:
        runs_of(visit, task_id)
    return _fields(visit, task_id, lambda state: all(id not in state.live for id in _runs(state, task_id)))


def _runs(state: State, task_id: str) -> list[str]:
    return [id for id, one in state.allocations.items() if one.task_id == task_id]


def _fields(visit: UserVisit, task_id: str, is_over: Callable[[State], bool]) -> Response:
    async def ask() -> dict[str, object]:
        return log.fields(await visit.peers.ask(LogFields(task_id)))

    def over(state: State) -> bool:
        return is_over(state) or not visit.params.flag("follow", default=False)

    return visit.stream(watched(visit, ask, over, period_s(visit)))


def _stream(
    visit: UserVisit, task_id: str, trial_id: int | None, is_over: Callable[[State], bool]
) -> Response:
    query = asked_for(visit, task_id)
    limit = visit.params.integer("limit")
    if limit < 0:
        raise invalid("Limit must be >= 0")
    if visit.params.flag("follow", default=False):
        if limit:
            raise invalid("Limit cannot be specified when following")
        if query.descending:
            raise invalid("A log can only be followed in ascending order")
    elif limit or query.descending or not is_over(visit.catalogue.state):
        # Of a task that is over all is read to its end: the newest lines may not be stored as pages yet.
        return visit.stream(_shown(follow.read(visit.peers, query, limit), trial_id))
    follower = follow.Follower(
        visit.catalogue,
        visit.peers,
        visit.backend.journal,
        query,
        is_over=is_over,
        recheck=visit.session,
    )
    return visit.stream(_shown(follower.lines(), trial_id))


async def _shown(
    pages: AsyncIterator[follow.Lines], trial_id: int | None
) -> AsyncIterator[list[dict[str, object]]]:
    async for lines in pages:
        yield [log.line(line, trial_id) for line in lines]
