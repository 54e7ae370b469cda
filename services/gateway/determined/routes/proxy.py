"""HTTP proxy to tasks: forwards requests below `/proxy/<task id>/` (REST spec, section 8).

A browser with a session cookie is redirected to an address with a ticket (`services.web.tickets`), which
isolates the task's page. Programs, which send a header, are answered directly.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import quote

import h11
import httpx
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from det_contracts import ids, page_key
from det_contracts.problems import Refused, invalid, not_found, unavailable
from services.catalogue.domain import OwnTask
from services.catalogue.gathers import check_place
from services.catalogue.rights import Directory, judge
from services.gateway.http.streaming import Stream
from services.gateway.http.visit import SCRIPTS_HEADER, Anybody, UserVisit, Visit
from services.kit import task_tokens
from services.kit.authz.judge import Wish, require
from services.web import task_pages, tickets, upgrades
from services.web.errors import forbidden, unauthenticated, unimplemented
from services.web.pacing import stranger_at
from services.web.tunnels import EXTENSION, Tunnel
from services.web.upgrades import agreed, is_upgrade

root = APIRouter()
ACT_FOR_OWNER = ("NOTEBOOK", "SHELL")
"""Kinds of tasks whose pages execute arbitrary input with the rights of the task's owner."""
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
TIMEOUT = httpx.Timeout(60.0, connect=5.0)
LAST_STATUS = 599
ANSWER_S = 60.0
"""Maximum time from the last byte of the request to the start of the answer. It also stops a task that sends
a byte now and then, which the timeouts of single steps would never do.
"""


@root.api_route("/proxy/{task_id}", methods=METHODS, include_in_schema=False)
@root.api_route("/proxy/{task_id}/{rest:path}", methods=METHODS, include_in_schema=False)
async def forward(visit: Anybody, task_id: str, rest: str = "") -> Response:
    """Forward a request to the task, and return its answer."""
    request = visit.request
    ticket = rest.partition("/")[0]
    path = request.scope["raw_path"].partition(b"?")[0]
    if ticket.startswith(tickets.MARK):
        if request.method == "OPTIONS" and "access-control-request-method" in request.headers:
            # Browsers send CORS preflights without credentials. The answer contains nothing of the task.
            return Response(status_code=204, headers=dict(task_pages.FROM_ITSELF))
        plain = path.replace(f"/{ticket}".encode(), b"", 1)
        return await _asked(_ticketed(visit, task_id, ticket), task_id, plain, f"/{ticket}")
    if is_upgrade(request) and visit.token() is None:
        return await _joined(_keyed(visit, task_id), task_id, path)
    seen = UserVisit(request)
    if {"authorization", SCRIPTS_HEADER} & set(request.headers.keys()):
        return await _asked(seen, task_id, path, "")
    if request.method not in ("GET", "HEAD") or is_upgrade(request):
        raise forbidden(f"open the page of task {task_id} first: requests from other pages are refused")
    return _to_its_page(seen, task_id, path)


@root.get("/det/interactive/{task_id}/{rest:path}")
async def of_older_clients(visit: Anybody, task_id: str, rest: str) -> Response:
    """Redirect the address that 0.25 clients print for a notebook; `rest` is the page's name."""
    return RedirectResponse(f"/proxy/{quote(task_id, safe='')}/")


def _to_its_page(visit: UserVisit, task_id: str, path: bytes) -> Response:
    """Redirect a browser to the isolated address of the task's page."""
    _address(visit, task_id)
    root, _, inner = path.decode("ascii").removeprefix("/proxy/").partition("/")
    sealed = tickets.seal(visit.backend.token_key, task_id, visit.token() or "")
    query = f"?{visit.request.url.query}" if visit.request.url.query else ""
    return RedirectResponse(f"/proxy/{root}/{sealed}/{inner}{query}", 303, {"Cache-Control": "no-store"})


def _ticketed(visit: Visit, task_id: str, ticket: str) -> UserVisit:
    """The request on behalf of the ticket's session. Raises `Refused` (401)."""
    try:
        token = tickets.unseal(visit.backend.token_key, task_id, ticket)
    except tickets.BadTicket as error:
        raise unauthenticated(str(error)) from None
    scope, of_people = visit.request.scope, {b"authorization", b"cookie", SCRIPTS_HEADER.encode()}
    headers = [one for one in scope["headers"] if one[0] not in of_people]
    headers.append((b"authorization", f"Bearer {token}".encode()))
    found = UserVisit(Request({**scope, "headers": headers}, visit.request.receive))
    judge(visit.catalogue.state, found.session(), Wish("view", "page", task_id))
    return found


async def _asked(visit: UserVisit, task_id: str, path: bytes, ticket: str) -> Response:
    _check_right(visit, task_id)
    if is_upgrade(visit.request):
        return await _joined(visit, task_id, path)
    address, request, page = _address(visit, task_id), visit.request, bool(ticket)
    target = _target(request, path)
    headers = _headers(visit, task_id, page=page)
    length = request.headers.get("content-length")
    limit = asyncio.timeout(ANSWER_S)
    sends = length is not None or "transfer-encoding" in request.headers
    headers += [("content-length", length)] if length is not None else []
    asked = httpx.Request(
        request.method,
        _url(address, target),
        headers=upgrades.as_bytes(headers),
        content=_body(request, limit) if sends else None,
        extensions={"timeout": TIMEOUT.as_dict()},
    )
    try:
        async with limit:
            answer = await visit.backend.to_tasks.handle_async_request(asked)
    except TimeoutError:
        raise unavailable(
            f"task {task_id} did not begin to answer at {address} within {ANSWER_S:g} s; try again when it "
            "has started; see its log"
        ) from None
    except httpx.HTTPError as error:
        raise unavailable(f"task {task_id} does not answer at {address}: {error!r}") from None
    try:
        _check_status(task_id, answer.status_code)
    except Refused:
        await answer.aclose()
        raise
    return _handed_on(visit, answer, task_id, ticket)


def _check_status(task_id: str, status: int) -> None:
    """Raise `Refused` (503) for a status that a server cannot send on."""
    if status > LAST_STATUS:
        raise unavailable(
            f"task {task_id} answered with status {status}; HTTP has none above {LAST_STATUS}: fix the task"
        )


async def _body(request: Request, limit: asyncio.Timeout) -> AsyncIterator[bytes]:
    async for chunk in request.stream():
        limit.reschedule(asyncio.get_running_loop().time() + ANSWER_S)
        if chunk:
            yield chunk


def _handed_on(visit: UserVisit, answer: httpx.Response, task_id: str, ticket: str) -> Response:
    headers = task_pages.from_task(upgrades.as_text(answer.headers.raw), page=bool(ticket))
    content = answer.aiter_raw()
    own = f"/proxy/{task_id}"
    if ticket and task_pages.is_page(headers):
        content = task_pages.moved(content, f"{own}/".encode(), f"{own}{ticket}/".encode())
        content = task_pages.with_stand_ins(content)
    shown = Stream(content, visit=visit, status_code=answer.status_code, release=answer.aclose)
    for name, value in headers:
        if name == "location" and value.startswith(own):
            value = own + ticket + value.removeprefix(own)
        shown.headers.append(name, value)
    return shown


async def _joined(visit: Visit, task_id: str, path: bytes) -> Response:
    """Tunnel a WebSocket to the task, byte by byte."""
    if EXTENSION not in visit.request.scope.get("extensions", {}):
        raise unimplemented("this server cannot leave HTTP for a WebSocket")
    address, held = _address(visit, task_id), contextlib.AsyncExitStack()
    headers = _headers(visit, task_id, page=False)
    try:
        async with asyncio.timeout(ANSWER_S):
            task = await held.enter_async_context(agreed(address, _target(visit.request, path), headers))
    except upgrades.Refused as refused:
        await held.aclose()
        _check_status(task_id, refused.status)
        return Response(status_code=refused.status)
    except (OSError, TimeoutError, h11.ProtocolError) as error:
        await held.aclose()
        raise unavailable(f"task {task_id} does not answer at {address}: {error!r}") from None
    return Tunnel(
        task,
        places=visit.backend.limits.streams,
        who=visit.user.username if isinstance(visit, UserVisit) else stranger_at(visit.address),
        recheck=lambda: _recheck(visit, task_id),
        release=held.aclose,
    )


def _recheck(visit: Visit, task_id: str) -> None:
    """Raise `Refused` if the task is over or the caller has lost access."""
    _address(visit, task_id)
    if not isinstance(visit, UserVisit):
        _keyed(visit, task_id)
    else:
        judge(visit.catalogue.state, visit.session(), Wish("view", "page", task_id))
        _check_right(visit, task_id)


def _keyed(visit: Visit, task_id: str) -> Visit:
    """Admit a caller without a session to a shell, whose key authenticates them. Raises `Refused` (401).

    A shell's key acts for its owner and does not identify who uses it, so it works as long as the owner has
    access.
    """
    state = visit.catalogue.state
    known = state.tasks.get(task_id)
    if visit.backend.settings.shell_needs_session or known is None or known.kind != "SHELL":
        raise unauthenticated("not logged in; run 'det user login'")
    try:
        require(Directory(state), known.user, [Wish("control_task", "task", task_id)])
    except Refused:
        raise unauthenticated("the owner of this shell has lost access to it; run 'det user login'") from None
    return visit


def _check_right(visit: UserVisit, task_id: str) -> None:
    """Require more than view access for tasks that act for their owner. Raises `Refused` (403)."""
    known = visit.catalogue.state.tasks.get(task_id)
    if known is not None and known.kind in ACT_FOR_OWNER:
        visit.need("control_task", "task", task_id)


def _url(address: str, target: bytes) -> httpx.URL:
    """Build the task's URL. Raises `Refused` (400) if it is invalid, for example with a `#`."""
    try:
        return httpx.URL(f"http://{address}").copy_with(raw_path=target)
    except httpx.InvalidURL as error:
        raise invalid(f"the request's address is not valid: {error}") from None


def _target(request: Request, path: bytes) -> bytes:
    query: bytes = request.scope["query_string"]
    return path + (b"?" + query if query else b"")


def _headers(visit: Visit, task_id: str, *, page: bool) -> task_pages.Headers:
    """The headers for the task. A task that only the gateway may call also gets a credential."""
    headers = task_pages.for_task(visit.request.headers.items(), page=page)
    key, known = visit.backend.task_key, visit.catalogue.state.tasks.get(task_id)
    if key is not None and known is not None and known.kind in ACT_FOR_OWNER:
        token = task_tokens.issue(key, ids.allocation_id(task_id, 1))
        headers.append((page_key.HEADER, page_key.credential(token)))
    return headers


def _address(visit: Visit, task_id: str) -> str:
    state = visit.catalogue.state
    known: OwnTask | None = state.tasks.get(task_id)
    allocation = ids.allocation_id(task_id, 1)
    if known is None or allocation not in state.live:
        raise not_found("live task", task_id)
    if not known.address:
        raise unavailable(f"task {task_id} does not answer HTTP yet; try again")
    # Old events hold addresses that were not validated.
    check_place(state, allocation, known.address)
    return known.address
