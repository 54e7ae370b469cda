"""Commands, TensorBoards, notebooks and shells (REST spec, section 7)."""

from __future__ import annotations

import base64
import time
import uuid
from typing import Annotated, Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from det_contracts import expconf, ids
from det_contracts.commands import ChangeJob, StateIdle, StopTask, SubmitTask
from det_contracts.events.scheduler import OwnKind
from det_contracts.problems import Refused, invalid, not_found
from services.catalogue.domain import OwnTask, State
from services.kit import paging
from services.kit.pool_bindings import check_pool
from services.people import users, workspace_records
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.bodies import IdleReport, TaskBody, TaskPriority
from services.rest_requests.body import request_schema
from services.rest_routes.present import records
from services.rest_routes.present.answers import page_schema
from services.rest_routes.present.own_task import NOUNS, notebook_preview, own_task
from services.submission import archive, configuration, images, secrets, submit, tensorboards
from services.submission.idle import idle_timeout_s
from services.submission.own_task import (
    RESERVED_FIELDS,
    TaskRequest,
    add_ssh_keys,
    check_work_dir,
    complete_request,
)
from services.web.query import FromQuery, Integer, Paged, Users, enum_value
from services.web.routes import Routes

router = Routes()


def _find(state: State, kind: OwnKind, id: str) -> OwnTask:
    task = state.tasks.get(id)
    if task is None or task.kind != kind:
        raise not_found(NOUNS[kind], id)
    return task


def _shown(call: UserCall, kind: OwnKind, id: str, **more: Any) -> Response:
    state = call.catalogue.state
    task = _find(state, kind, id)
    shown = own_task(task, state)
    if kind == "SHELL" and _may_control(call, id):
        keys = secrets.unseal_config(task.config, task.user, call.backend.sealer)["shell"]
        shown["privateKey"] = keys["private_key"]
    return call.answer({NOUNS[kind]: shown, "config": _public_config(task.config), **more})


def _public_config(config: dict[str, Any]) -> dict[str, Any]:
    return expconf.mask_secrets(
        {name: value for name, value in config.items() if name not in RESERVED_FIELDS}
    )


def _may_control(call: UserCall, id: str) -> bool:
    """Whether the user may kill the task. Only then do they get the private key of a shell."""
    try:
        call.check_permission("control_task", "task", id)
    except Refused:
        return False
    return True


async def _start(call: UserCall, kind: OwnKind) -> Response:
    try:
        async with submit.receive(call, "task") as (body, code):
            return await _start_task(call, kind, body, code)
    except archive.TooLarge as error:
        raise HTTPException(413, str(error)) from None


async def _start_task(call: UserCall, kind: OwnKind, body: TaskBody, code: submit.SubmittedCode) -> Response:
    state = call.catalogue.state
    submit.check_template(call, body.template_name)
    # A TensorBoard is given the storage of these, with its keys.
    call.check_view("experiment", *body.experiment_ids)
    call.check_view("trial", *body.trial_ids)
    space = workspace_records.workspace(state, body.workspace_id or workspace_records.FIRST).workspace_id
    call.check_permission("create_task", "workspace", space)
    await configuration.check_task(call.backend, call.user.username, body.config)
    request: TaskRequest = complete_request(body, kind, call.backend, space)
    check_work_dir(request.config, has_files=not code.is_empty)
    check_pool(state, request.pool, space, workspace_records.workspace(state, space).name)
    # Before anything is stored or created.
    if body.preview and kind == "NOTEBOOK":
        user = call.user.username
        made = notebook_preview(request.name, request.pool, user, space, time.time())
        return call.answer({"notebook": made, "config": _public_config(request.config), "warnings": []})
    if kind == "TENSORBOARD":
        request.config["tensorboard"] = tensorboards.order(call, body, request.config)
    if kind == "SHELL":
        _check_no_passphrase(body)
        add_ssh_keys(request.config)
    await submit.check_disks(call.backend, f"the {NOUNS[kind]}", code, call.user.username)
    # After all checks, so that what is refused leaves nothing in the blob store.
    context = await code.store(call.backend, call.user.username)
    command = SubmitTask(
        task_id=str(uuid.uuid4()),
        kind=kind,
        user=call.user.username,
        name=request.name,
        config=secrets.seal_config(request.config, call.user.username, call.backend.sealer),
        context=context,
        slots=request.slots,
        pool=request.pool,
        priority=request.priority,
        workspace_id=space,
        agent_user=workspace_records.agent_user_of(state, space, call.user.username),
    )
    capacity_warning = await call.peers.misfit_reason(request.pool, request.slots, single_agent=True)
    id = await call.create(command)
    notices = [capacity_warning] if capacity_warning else []
    if kind == "COMMAND":
        notices += images.unused_image_warnings(request.config, request.pool, state)
    warnings = {"warnings": [configuration.SLOTS_EXCEEDED] if capacity_warning else []}
    return _shown(call, kind, id, **warnings, **({"notices": notices} if notices else {}))


def _check_no_passphrase(body: TaskBody) -> None:
    try:
        content = msgspec.json.decode(base64.b64decode(body.data, validate=True) or b"{}")
    except (ValueError, msgspec.DecodeError):
        raise invalid("data: base64 of a JSON object is expected") from None
    if isinstance(content, dict) and content.get("passphrase"):
        raise invalid(
            "a passphrase for the key of a shell is not supported: the key opens only this shell and only "
            "its owner gets it; start the shell without --passphrase"
        )


SORTS = {"ID": "id", "DESCRIPTION": "name", "START_TIME": "number", "WORKSPACE_ID": "workspace_id"}


class TasksQuery(Paged, Users):
    """Query parameters of a list of tasks."""

    workspace_id: Integer = 0
    sort_by: Annotated[str, enum_value("SORT_BY_", SORTS)] = "START_TIME"


def _add(kind: OwnKind) -> None:
    noun = NOUNS[kind]
    path = f"/{noun}s"

    async def start(call: Authenticated) -> Response:
        """Start a task. It waits for slots, runs once, and has a log."""
        return await _start(call, kind)

    async def list_all(call: Authenticated, query: FromQuery[TasksQuery]) -> Response:
        """All current and past tasks of this kind; if no order is given, as they were started."""
        state, space = call.catalogue.state, query.workspace_id
        wanted = users.names_of(state, query.users, query.user_ids)
        own = [task for task in state.tasks.values() if task.kind == kind]
        visibility = call.visibility
        own = visibility.filter_visible(lambda task: visibility.includes_workspace(task.workspace_id), own)
        own = [task for task in own if not wanted or task.user in wanted]
        own = [task for task in own if space in (0, task.workspace_id)]
        own.sort(key=lambda task: (getattr(task, SORTS[query.sort_by]), task.number))
        page, pagination = paging.cut([own_task(task, state) for task in own], query.window)
        return call.answer({f"{noun}s": page, "pagination": pagination})

    async def get(call: Authenticated, id: str) -> Response:
        """One task, with its configuration."""
        return _shown(call, kind, id)

    async def kill(call: Authenticated, id: str) -> Response:
        """Kill a task immediately."""
        _find(call.catalogue.state, kind, id)
        await call.peers.command(StopTask(task_id=id, user=call.user.username))
        return _shown(call, kind, id)

    async def set_priority(call: Authenticated, id: str, body: TaskPriority) -> Response:
        """Change the priority of a task's job."""
        owner = ids.owner_of_task(_find(call.catalogue.state, kind, id).number)
        user = call.user.username
        await call.peers.command(ChangeJob(experiment_id=owner, priority=body.priority, user=user))
        return _shown(call, kind, id)

    router.add_api_route(
        path,
        start,
        ("create_task", "body"),
        methods=["POST"],
        name=f"start a {noun}",
        **request_schema(TaskBody),
    )
    shape = page_schema(f"{noun}s", records.Task)
    router.add_api_route(path, list_all, ("view", "listed"), methods=["GET"], name=f"list {noun}s", **shape)
    router.add_api_route(f"{path}/{{id}}", get, ("view", "task"), methods=["GET"], name=f"get a {noun}")
    router.add_api_route(
        f"{path}/{{id}}/kill", kill, ("control_task", "task"), methods=["POST"], name=f"kill a {noun}"
    )
    router.add_api_route(
        f"{path}/{{id}}/set_priority",
        set_priority,
        ("control_task", "task"),
        methods=["POST"],
        name=f"set the priority of a {noun}",
    )


for _kind in NOUNS:
    _add(_kind)


@router.put("/notebooks/{id}/report_idle", ("control_task", "task"))
async def report_idle(call: Authenticated, id: str, body: IdleReport) -> Response:
    """Report whether a notebook is in use. One that is idle for its whole `idle_timeout` is stopped."""
    notebook = _find(call.catalogue.state, "NOTEBOOK", id)
    within_s = idle_timeout_s(notebook.config)
    if within_s is not None:
        user = call.user.username
        await call.peers.command(StateIdle(task_id=id, idle=body.idle, within_s=within_s, user=user))
    return call.answer({})
