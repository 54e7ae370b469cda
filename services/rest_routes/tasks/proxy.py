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
from fastapi import Request
from starlette.responses import RedirectResponse, Response

from det_contracts import ids, page_key
from det_contracts.problems import Refused, invalid, not_found, unavailable
from services.catalogue.domain import OwnTask
from services.catalogue.gathers import check_task_address
from services.catalogue.rights import Directory, authorize
from services.kit import task_tokens
from services.kit.authz.access_check import AccessRequest, require
from services.rest_requests.api_call import ALLOCATION_TOKEN_HEADER, Anybody, ApiCall, UserCall
from services.rest_requests.streaming import Stream
from services.web import task_pages, tickets, upgrades
from services.web.errors import forbidden, unauthenticated, unimplemented
from services.web.pacing import anonymous_client
from services.web.routes import Routes
from services.web.tunnels import EXTENSION, Tunnel
from services.web.upgrades import is_upgrade, request_upgrade

root = Routes()
OWNER_RIGHTS_KINDS = ("NOTEBOOK", "SHELL")
"""Kinds of tasks whose pages execute arbitrary input with the rights of the task's owner."""
KEYED_KINDS = (*OWNER_RIGHTS_KINDS, "TENSORBOARD")
"""Kinds of tasks that only the gateway may call. Scripts on their hosts can reach their ports too."""
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
TIMEOUT = httpx.Timeout(60.0, connect=5.0)
LAST_STATUS = 599
ANSWER_S = 60.0
"""Maximum time from the last byte of the request to the start of the answer. It also stops a task that sends
a byte now and then, which the timeouts of single steps would never do.
"""


@root.api_route("/proxy/{task_id}", ("view", "page"), reads=True, methods=METHODS, include_in_schema=False)
@root.api_route(
    "/proxy/{task_id}/{rest:path}", ("view", "page"), reads=True, methods=METHODS, include_in_schema=False
)
async def forward(call: Anybody, task_id: str, rest: str = "") -> Response:
    """Forward a request to the task, and return its answer."""
    request = call.request
    ticket = rest.partition("/")[0]
    path = request.scope["raw_path"].partition(b"?")[0]
    # Before everything else: a page at its ticket's address is another origin, and neither a cookie nor a
    # header may count there.
    if ticket.startswith(tickets.PREFIX):
        if request.method == "OPTIONS" and "access-control-request-method" in request.headers:
            # Browsers send CORS preflights without credentials. The answer contains nothing of the task.
            return Response(status_code=204, headers=dict(task_pages.CORS_HEADERS))
        # The task never sees the ticket, with which its own page's code could call the REST API.
        plain = path.replace(f"/{ticket}".encode(), b"", 1)
        return await _forward_http(_call_of_ticket(call, task_id, ticket), task_id, plain, f"/{ticket}")
    # `det shell` of 0.25 opens its connection without a session; the shell's key authenticates it.
    if is_upgrade(request) and call.token() is None:
        return await _tunnel_websocket(_check_shell_key_access(call, task_id), task_id, path)
    user_call = UserCall(request)
    if {"authorization", ALLOCATION_TOKEN_HEADER} & set(request.headers.keys()):
        return await _forward_http(user_call, task_id, path, "")
    # Only a cookie is left, which a browser also sends for requests of other sites' pages. A redirect of a
    # GET does nothing.
    if request.method not in ("GET", "HEAD") or is_upgrade(request):
        raise forbidden(f"open the page of task {task_id} first: requests from other pages are refused")
    return _redirect_to_page(user_call, task_id, path)


@root.get("/det/interactive/{task_id}/{rest:path}", ("anybody", "cluster"), include_in_schema=False)
async def of_older_clients(call: Anybody, task_id: str, rest: str) -> Response:
    """Redirect the address that 0.25 clients print for a notebook; `rest` is the page's name."""
    return RedirectResponse(f"/proxy/{quote(task_id, safe='')}/")


def _redirect_to_page(call: UserCall, task_id: str, path: bytes) -> Response:
    """Redirect a browser to the isolated address of the task's page."""
    _address(call, task_id)
    root, _, inner = path.decode("ascii").removeprefix("/proxy/").partition("/")
    sealed = tickets.seal(call.backend.token_key, task_id, call.token() or "")
    query = f"?{call.request.url.query}" if call.request.url.query else ""
    return RedirectResponse(f"/proxy/{root}/{sealed}/{inner}{query}", 303, {"Cache-Control": "no-store"})


def _call_of_ticket(call: ApiCall, task_id: str, ticket: str) -> UserCall:
    """The request on behalf of the ticket's session. Raises `Refused` (401)."""
    try:
        token = tickets.unseal(call.backend.token_key, task_id, ticket)
    except tickets.BadTicket as error:
        raise unauthenticated(str(error)) from None
    scope, of_people = call.request.scope, {b"authorization", b"cookie", ALLOCATION_TOKEN_HEADER.encode()}
    # The session is the ticket's alone. Otherwise a header that the task's page sets would decide who asks.
    headers = [header for header in scope["headers"] if header[0] not in of_people]
    headers.append((b"authorization", f"Bearer {token}".encode()))
    user_call = UserCall(Request({**scope, "headers": headers}, call.request.receive))
    # Routes are checked before they run, but with the request's own session, which here is nobody.
    authorize(call.catalogue.state, user_call.session(), AccessRequest("view", "page", task_id))
    return user_call


async def _forward_http(call: UserCall, task_id: str, path: bytes, ticket: str) -> Response:
    _check_control_right(call, task_id)
    if is_upgrade(call.request):
        return await _tunnel_websocket(call, task_id, path)
    address, request, page = _address(call, task_id), call.request, bool(ticket)
    target = _target(request, path)
    headers = _headers(call, task_id, page=page)
    # A request without a body must not get one, not even of length 0: some servers refuse it for GET.
    length = request.headers.get("content-length")
    limit = asyncio.timeout(ANSWER_S)
    sends = length is not None or "transfer-encoding" in request.headers
    headers += [("content-length", length)] if length is not None else []
    task_request = httpx.Request(
        request.method,
        _url(address, target),
        headers=upgrades.as_bytes(headers),
        content=_body(call, limit) if sends else None,
        extensions={"timeout": TIMEOUT.as_dict()},
    )
    try:
        async with limit:
            answer = await call.backend.task_transport.handle_async_request(task_request)
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
    return _relay_answer(call, answer, task_id, ticket)


def _check_status(task_id: str, status: int) -> None:
    """Raise `Refused` (503) for a status that a server cannot send on."""
    if status > LAST_STATUS:
        raise unavailable(
            f"task {task_id} answered with status {status}; HTTP has none above {LAST_STATUS}: fix the task"
        )


async def _body(call: UserCall, limit: asyncio.Timeout) -> AsyncIterator[bytes]:
    turns, who = call.backend.limits.data_turns, call.user.username
    async for chunk in turns.paced(call.request.stream(), who):
        # An upload of an hour is fine as long as something arrives.
        limit.reschedule(asyncio.get_running_loop().time() + ANSWER_S)
        if chunk:
            yield chunk


def _relay_answer(call: UserCall, answer: httpx.Response, task_id: str, ticket: str) -> Response:
    headers = task_pages.response_headers(upgrades.as_text(answer.headers.raw), page=bool(ticket))
    content: AsyncIterator[bytes] = answer.aiter_raw()
    own = f"/proxy/{task_id}"
    # Only with a ticket, since programs want what the task has sent, byte by byte.
    if ticket and task_pages.is_page(headers):
        content = task_pages.rewrite_links(content, f"{own}/".encode(), f"{own}{ticket}/".encode())
        content = task_pages.insert_polyfills(content)
    shown = Stream(content, call=call, passed_on=True, status_code=answer.status_code, release=answer.aclose)
    for name, value in headers:
        # A redirect within the task would otherwise leave the isolated address.
        if name == "location" and value.startswith(own):
            value = own + ticket + value.removeprefix(own)
        shown.headers.append(name, value)
    return shown


async def _tunnel_websocket(call: ApiCall, task_id: str, path: bytes) -> Response:
    """Tunnel a WebSocket to the task, byte by byte."""
    if EXTENSION not in call.request.scope.get("extensions", {}):
        raise unimplemented("this server cannot leave HTTP for a WebSocket")
    address, exit_stack = _address(call, task_id), contextlib.AsyncExitStack()
    headers = _headers(call, task_id, page=False)
    try:
        async with asyncio.timeout(ANSWER_S):
            task = await exit_stack.enter_async_context(
                request_upgrade(address, _target(call.request, path), headers)
            )
    except upgrades.UpgradeRefused as refused:
        await exit_stack.aclose()
        _check_status(task_id, refused.status)
        return Response(status_code=refused.status)
    except (OSError, TimeoutError, h11.ProtocolError) as error:
        await exit_stack.aclose()
        raise unavailable(f"task {task_id} does not answer at {address}: {error!r}") from None
    return Tunnel(
        task,
        admission=call.backend.limits.streams,
        who=call.user.username if isinstance(call, UserCall) else anonymous_client(call.address),
        turns=call.backend.limits.data_turns,
        recheck=lambda: _recheck(call, task_id),
        release=exit_stack.aclose,
    )


def _recheck(call: ApiCall, task_id: str) -> None:
    """Raise `Refused` if the task is over or the caller has lost access."""
    _address(call, task_id)
    if not isinstance(call, UserCall):
        _check_shell_key_access(call, task_id)
    else:
        authorize(call.catalogue.state, call.session(), AccessRequest("view", "page", task_id))
        _check_control_right(call, task_id)


def _check_shell_key_access(call: ApiCall, task_id: str) -> ApiCall:
    """Admit a caller without a session to a shell, whose key authenticates them. Raises `Refused` (401).

    A shell's key acts for its owner and does not identify who uses it, so it works as long as the owner has
    access.
    """
    state = call.catalogue.state
    task = state.tasks.get(task_id)
    if call.backend.settings.shell_needs_session or task is None or task.kind != "SHELL":
        raise unauthenticated("not logged in; run 'det user login'")
    try:
        require(Directory(state), task.user, [AccessRequest("control_task", "task", task_id)])
    except Refused:
        raise unauthenticated("the owner of this shell has lost access to it; run 'det user login'") from None
    return call


def _check_control_right(call: UserCall, task_id: str) -> None:
    """Require more than view access for tasks that act for their owner. Raises `Refused` (403)."""
    task = call.catalogue.state.tasks.get(task_id)
    if task is not None and task.kind in OWNER_RIGHTS_KINDS:
        call.check_permission("control_task", "task", task_id)


def _url(address: str, target: bytes) -> httpx.URL:
    """Build the task's URL. Raises `Refused` (400) if it is invalid, for example with a `#`."""
    try:
        return httpx.URL(f"http://{address}").copy_with(raw_path=target)
    except httpx.InvalidURL as error:
        raise invalid(f"the request's address is not valid: {error}") from None


def _target(request: Request, path: bytes) -> bytes:
    query: bytes = request.scope["query_string"]
    return path + (b"?" + query if query else b"")


def _headers(call: ApiCall, task_id: str, *, page: bool) -> task_pages.Headers:
    """The headers for the task. A task that only the gateway may call also gets a credential."""
    headers = task_pages.request_headers(call.request.headers.items(), page=page)
    key, task = call.backend.task_key, call.catalogue.state.tasks.get(task_id)
    if key is not None and task is not None and task.kind in KEYED_KINDS:
        token = task_tokens.issue(key, ids.allocation_id(task_id, 1))
        headers.append((page_key.HEADER, page_key.credential(token)))
    return headers


def _address(call: ApiCall, task_id: str) -> str:
    state = call.catalogue.state
    task: OwnTask | None = state.tasks.get(task_id)
    allocation = ids.allocation_id(task_id, 1)
    if task is None or allocation not in state.live:
        raise not_found("live task", task_id)
    if not task.address:
        raise unavailable(f"task {task_id} does not answer HTTP yet; try again")
    # Old events hold addresses that were not validated.
    check_task_address(state, allocation, task.address)
    return task.address
