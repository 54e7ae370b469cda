"""The single authorization check that every request passes before its route runs (docs/rights.md)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from fastapi import Request

from det_contracts import ids
from det_contracts.problems import not_found
from services.catalogue.domain import State
from services.catalogue.rights import Directory, authorize
from services.catalogue.visibility import Visibility
from services.kit.authz import acting
from services.kit.authz.access_check import AccessRequest, forbidden
from services.kit.authz.needs import PARAMETER, Row
from services.kit.authz.permissions import Kind
from services.kit.roots import Key
from services.people import tokens
from services.rest_requests.api_call import FOR_READING, ApiCall
from services.web import tickets
from services.web.upgrades import is_upgrade


def guard(row: Row) -> Callable[[Request], Awaitable[None]]:
    """Make the check that every request to a route has to pass, from what the route needs.

    The check raises `Refused` if the caller is unknown (401) or not allowed (403).
    """

    async def check(request: Request) -> None:
        await _check(request, row)

    return check


async def _check(request: Request, row: Row) -> None:
    permission, kind, reads = row
    ticket = kind == "page" and request.path_params.get("rest", "").startswith(tickets.PREFIX)
    call = ApiCall(request)
    # An upgrade with no token authenticates with the shell's key, which the route itself checks.
    keyed = kind == "page" and is_upgrade(request) and call.token() is None
    if permission != "anybody" or ticket or request.method != "GET":
        # Another gateway may have acknowledged a change a moment ago. The requests excluded here show no
        # record.
        await call.catalogue.catch_up()
    if permission == "anybody" or ticket or keyed:
        return
    session = call.session()
    # In a thread, before the check looks the records up: rules that find one missing would load it on the
    # event loop.
    await call.catalogue.evicted.load(_named_record_keys(request, request.scope["route"].path))
    # The session may have been closed while records were loading.
    request.state.session = session = call.session()
    if session.scope == "read" and not reads:
        raise forbidden(FOR_READING)
    # Tag every command sent for this request with the script's allocation, so that owners see who acts.
    acting.SCRIPT.set(session.allocation)
    id = _named_id(request, kind)
    request.state.access_checks = [AccessRequest(permission, kind, id)]
    authorize(call.catalogue.state, session, *request.state.access_checks)
    if id is not None and kind in IN_WORKSPACES:
        _check_exists(call.catalogue.state, session, kind, id)
    if permission == "speak" and session.allocation:
        _check_own_run(call.catalogue.state, session, kind, id)


def _named_record_keys(request: Request, template: str) -> Iterator[Key]:
    """The records named by the path. They are loaded before the check, without blocking other requests."""
    named = request.path_params
    if request.method != "GET" or not template.endswith(_READ_IN_PARTS):
        yield from ((table, text) for name, table in _TABLES.items() if (text := named.get(name, "")))
    if (id := ids.parse_number(named.get("trial_id", ""))) is not None:
        yield "trials", id
    if (id := ids.parse_number(named.get("experiment_id", ""))) is not None:
        yield "submissions", id
    if owner := named.get("task_id", "").partition(".")[0]:
        yield "allocations", owner


_READ_IN_PARTS = ("/experiments/{experiment_id}", "/experiments/{experiment_id}/trials")
"""Routes that read for themselves what they show of an experiment that may have ten thousand trials."""
_TABLES = {
    # Loading any record of an experiment loads all of them, so its id is enough.
    "experiment_id": "allocations",
    "allocation_id": "allocations",
    "uuid": "checkpoints",
}


def _named_id(request: Request, kind: Kind) -> str | None:
    values = (request.path_params.get(name) for name in PARAMETER.get(kind, ()))
    return next((text for text in values if text is not None), None)


IN_WORKSPACES: tuple[Kind, ...] = (
    "workspace", "project", "experiment", "trial", "task", "page", "run", "checkpoint", "model",
)  # fmt: skip
"""Kinds of things that a workspace hides. A template is made under the name that its path has."""


ALL_PROJECTS = ("project", "0")
"""No project, and no secret either: lists take it for all that are visible."""


def _check_exists(state: State, session: tokens.Session, kind: Kind, id: str) -> None:
    """Refuse what is not there as what is hidden: the answer of the route would tell one from the other."""
    directory = Directory(state)
    if not directory.rbac or (kind, id) == ALL_PROJECTS or directory.target(kind, id) is not None:
        return
    if not Visibility(state, session).includes_everything:
        raise not_found("task" if kind == "page" else kind, id)


def _check_own_run(state: State, session: tokens.Session, kind: Kind, id: str | None) -> None:
    """Restrict a script to its own run, whatever else its owner may act for."""
    allocation = state.allocations[session.allocation]
    own = {"run": allocation.id, "trial": str(allocation.trial_id)}.get(kind)
    if own is not None and id != own and Directory(state).target(kind, id) is not None:
        raise forbidden(f"the token is that of {allocation.id}, which does not belong to {kind} {id}")
