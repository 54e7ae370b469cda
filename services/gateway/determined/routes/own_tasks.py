"""Commands and TensorBoards: tasks that people start by themselves (REST spec, section 7)."""

from __future__ import annotations

import uuid
from typing import Any

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import Response

from det_contracts import expconf, ids
from det_contracts.commands import ChangeJob, StopTask, SubmitTask
from det_contracts.events.scheduler import OwnKind
from det_contracts.problems import not_found
from services.catalogue.domain import OwnTask, State
from services.gateway.determined.present.own_task import own_task
from services.gateway.http import records
from services.gateway.http.answers import answering_page
from services.gateway.http.bodies import TaskBody, TaskPriority
from services.gateway.http.visit import Asked, UserVisit
from services.gateway.submit import archive, configuration, images, secrets, submit
from services.gateway.submit.own_task import Wish, completed, tensorboard
from services.kit import paging
from services.people import places, users
from services.web.query import Asks, Integer, Paged, Users

router = APIRouter()
NOUNS: dict[OwnKind, str] = {"COMMAND": "command", "TENSORBOARD": "tensorboard"}


def _find(state: State, kind: OwnKind, id: str) -> OwnTask:
    known = state.tasks.get(id)
    if known is None or known.kind != kind:
        raise not_found(NOUNS[kind], id)
    return known


def _shown(visit: UserVisit, kind: OwnKind, id: str, **more: Any) -> Response:
    state = visit.catalogue.state
    one = _find(state, kind, id)
    config = {name: value for name, value in one.config.items() if name != "tensorboard"}
    return visit.answer({NOUNS[kind]: own_task(one, state), "config": expconf.masked(config), **more})


async def _start(visit: UserVisit, kind: OwnKind) -> Response:
    try:
        async with submit.received(visit, "task") as (body, code):
            return await _started(visit, kind, body, code)
    except archive.TooLarge as error:
        raise HTTPException(413, str(error)) from None


async def _started(visit: UserVisit, kind: OwnKind, body: TaskBody, code: submit.Code) -> Response:
    state = visit.catalogue.state
    if body.template_name:
        visit.see("template", body.template_name)
    visit.see("experiment", *body.experiment_ids)
    visit.see("trial", *body.trial_ids)
    space = places.workspace(state, body.workspace_id or places.FIRST).workspace_id
    visit.need("create_task", "workspace", space)
    wish: Wish = completed(body, kind, visit.backend)
    if kind == "TENSORBOARD":
        wish.config["tensorboard"] = tensorboard(body, visit.backend)
    await submit.check_room(visit.backend, f"the {NOUNS[kind]}", code, visit.user.username)
    context = await code.store(visit.backend, visit.user.username)
    command = SubmitTask(
        task_id=str(uuid.uuid4()),
        kind=kind,
        user=visit.user.username,
        name=wish.name,
        config=secrets.for_log(wish.config, visit.user.username, visit.backend.sealer),
        context=context,
        slots=wish.slots,
        pool=wish.pool,
        priority=wish.priority,
        workspace_id=space,
        agent_user=places.agent_user_of(state, space, visit.user.username),
    )
    unfit = await visit.peers.fits(wish.pool, wish.slots, single_agent=True)
    id = await visit.create(command)
    notices = [unfit] if unfit else []
    if kind == "COMMAND":
        notices += images.unused(wish.config, wish.pool, state)
    told = {"warnings": [configuration.SLOTS_EXCEEDED] if unfit else []}
    return _shown(visit, kind, id, **told, **({"notices": notices} if notices else {}))


class TasksAsked(Paged, Users):
    """Whose tasks, and where."""

    workspace_id: Integer = 0


def _add(kind: OwnKind) -> None:
    noun = NOUNS[kind]
    path = f"/{noun}s"

    async def start(visit: Asked) -> Response:
        """Start one; it waits for slots, runs once, and has a log."""
        return await _start(visit, kind)

    async def list_all(visit: Asked, query: Asks[TasksAsked]) -> Response:
        """All there are and were, by when they were started."""
        state, space = visit.catalogue.state, query.workspace_id
        wanted = users.names_of(state, query.users, query.user_ids)
        own = [one for one in state.tasks.values() if one.kind == kind]
        sight = visit.sight
        own = sight.only(lambda one: sight.workspace(one.workspace_id), own)
        own = [one for one in own if not wanted or one.user in wanted]
        own = [one for one in own if space in (0, one.workspace_id)]
        own.sort(key=lambda one: one.number)
        page, pagination = paging.cut([own_task(one, state) for one in own], query.window)
        return visit.answer({f"{noun}s": page, "pagination": pagination})

    async def get(visit: Asked, id: str) -> Response:
        """One of them, with its configuration."""
        return _shown(visit, kind, id)

    async def kill(visit: Asked, id: str) -> Response:
        """End it at once."""
        _find(visit.catalogue.state, kind, id)
        await visit.peers.command(StopTask(task_id=id, user=visit.user.username))
        return _shown(visit, kind, id)

    async def set_priority(visit: Asked, id: str, body: TaskPriority) -> Response:
        """Give its job another priority."""
        owner = ids.owner_of_task(_find(visit.catalogue.state, kind, id).number)
        user = visit.user.username
        await visit.peers.command(ChangeJob(experiment_id=owner, priority=body.priority, user=user))
        return _shown(visit, kind, id)

    router.add_api_route(path, start, methods=["POST"], name=f"start a {noun}")
    shape = answering_page(f"{noun}s", records.Task)
    router.add_api_route(path, list_all, methods=["GET"], name=f"list {noun}s", **shape)
    router.add_api_route(f"{path}/{{id}}", get, methods=["GET"], name=f"get a {noun}")
    router.add_api_route(f"{path}/{{id}}/kill", kill, methods=["POST"], name=f"kill a {noun}")
    router.add_api_route(
        f"{path}/{{id}}/set_priority", set_priority, methods=["POST"], name=f"set the priority of a {noun}"
    )


for _kind in NOUNS:
    _add(_kind)
