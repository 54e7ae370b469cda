"""Error bodies and their statuses (REST spec, section 1)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import msgspec
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match

from det_contracts.problems import Code, Problem, Refused
from services.web.bodies import describe_faults
from services.web.query import FAULT, snake_case

log = structlog.get_logger()
RETRY_S = 5
"""When a client is to ask again if nobody knows how long something is away, in seconds."""
API = "/api/v1"
_TASK_PAGE = re.compile(r"/proxy/[^/~]+(/(?!~)|$)")
"""Without a ticket; a request with a ticket comes from a task's page, not from a person."""


class ApiError(msgspec.Struct, frozen=True):
    """How a problem code appears in answers."""

    number: int
    name: str
    status: int


API_ERRORS: dict[Code, ApiError] = {
    "invalid_argument": ApiError(3, "InvalidArgument", 400),
    "not_found": ApiError(5, "NotFound", 404),
    "already_exists": ApiError(6, "AlreadyExists", 409),
    "permission_denied": ApiError(7, "PermissionDenied", 403),
    "exhausted": ApiError(8, "ResourceExhausted", 429),
    "no_space": ApiError(8, "ResourceExhausted", 507),
    "failed_precondition": ApiError(9, "FailedPrecondition", 400),
    "unimplemented": ApiError(12, "Unimplemented", 501),
    "internal": ApiError(13, "Internal", 500),
    "unavailable": ApiError(14, "Unavailable", 503),
    "unauthenticated": ApiError(16, "Unauthenticated", 401),
}
_BY_STATUS: dict[int, Code] = {
    400: "invalid_argument",
    401: "unauthenticated",
    403: "permission_denied",
    404: "not_found",
    405: "unimplemented",
    413: "exhausted",
    501: "unimplemented",
    503: "unavailable",
    507: "no_space",
}


def unauthenticated(message: str) -> Refused:
    """Build a refusal for a missing or unknown identity."""
    return Refused(Problem("unauthenticated", message))


def forbidden(message: str) -> Refused:
    """Build a refusal for a known user without permission."""
    return Refused(Problem("permission_denied", message))


def unimplemented(message: str) -> Refused:
    """Build a refusal for a request that is understood but not supported."""
    return Refused(Problem("unimplemented", message))


def body(path: str, problem: Problem) -> dict[str, Any]:
    """Return an error body: one shape inside `/api/v1`, a plainer one outside."""
    # 0.25 served the rest with another library, whose errors look different; clients read both.
    if not path.startswith(API + "/"):
        return {"message": problem.message}
    meaning = API_ERRORS[problem.code]
    return {"error": {"code": meaning.number, "reason": meaning.name, "error": problem.message}}


def line(problem: Problem) -> dict[str, Any]:
    """Return an error as it appears inside a stream that has begun."""
    meaning = API_ERRORS[problem.code]
    return {
        "error": {
            "grpc_code": meaning.number,
            "http_code": meaning.status,
            "message": problem.message,
            "http_status": meaning.name,
        }
    }


def response(path: str, problem: Problem, status: int | None = None) -> Response:
    """Return a complete error response. `status` overrides that of the problem's code."""
    status = status or API_ERRORS[problem.code].status
    return Response(
        msgspec.json.encode(body(path, problem)),
        status,
        retry_after(problem, status),
        media_type="application/json",
    )


def retry_after(problem: Problem, status: int) -> dict[str, str]:
    """Return the header that says when to ask again, for the statuses after which clients do."""
    if status not in (429, 503):
        return {}
    return {"Retry-After": str(problem.retry_after_s or RETRY_S)}


def install(app: FastAPI) -> None:
    """Install handlers so that every error in `app` is returned in these shapes."""
    app.exception_handler(Refused)(_refused)
    app.exception_handler(HTTPException)(_http)
    app.exception_handler(RequestValidationError)(_invalid)
    app.exception_handler(ClientDisconnect)(_disconnected)
    app.exception_handler(Exception)(_failed)


async def _refused(request: Request, error: Refused) -> Response:
    if error.problem.code == "unauthenticated" and _is_link_to_task(request):
        path = request.scope["raw_path"].partition(b"?")[0].decode("ascii")
        requested_path = path + (f"?{request.url.query}" if request.url.query else "")
        where = f"/det/login?{urlencode({'to': requested_path})}"
        return RedirectResponse(where, 303, {"Cache-Control": "no-store"})
    return response(request.url.path, error.problem)


def _is_link_to_task(request: Request) -> bool:
    """Whether a browser without a session followed a link to a task's page, such as `det` prints."""
    browser = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    return (
        browser
        and _TASK_PAGE.match(request.url.path) is not None
        and not request.headers.get("authorization")
    )


async def _http(request: Request, error: HTTPException) -> Response:
    code = _BY_STATUS.get(error.status_code, "internal")
    message = str(error.detail)
    if error.status_code == 404:
        message = f"there is nothing at {request.url.path}"
    if error.status_code == 405:
        return _not_offered(request, _methods(request, _has_path) or _methods(request, _matches))
    return response(request.url.path, Problem(code, message), error.status_code)


def _not_offered(request: Request, methods: set[str]) -> Response:
    offered = ", ".join(sorted(methods))
    message = f"{request.method} is not offered at {request.url.path}, only {offered}"
    refusal = response(request.url.path, Problem("unimplemented", message), 405)
    refusal.headers["Allow"] = offered
    return refusal


def _methods(request: Request, is_meant: Callable[[APIRoute, Request], bool]) -> set[str]:
    """The methods of all routes that a request's path may mean."""
    routes = (route for route in request.app.router.routes if isinstance(route, APIRoute))
    return {method for route in routes if is_meant(route, request) for method in route.methods or ()}


def _matches(route: APIRoute, request: Request) -> bool:
    return route.matches(request.scope)[0] is not Match.NONE


def _has_path(route: APIRoute, request: Request) -> bool:
    return route.path == request.url.path


async def _invalid(request: Request, error: RequestValidationError) -> Response:
    # `PATCH /experiments/archive` would else be told that `archive` is no number.
    if any(fault["loc"][0] == "path" for fault in error.errors()):
        methods = _methods(request, _has_path)
        if methods:
            return _not_offered(request, methods)
    return response(request.url.path, Problem("invalid_argument", _faults(error)))


def _faults(error: RequestValidationError) -> str:
    queried = [fault for fault in error.errors() if fault["type"] == FAULT]
    others = [fault for fault in error.errors() if fault["type"] != FAULT]
    described = [f"{snake_case(fault['loc'][-1])} {fault['msg']}" for fault in queried]
    return "; ".join([*described, *([describe_faults(others, skip=1)] if others else [])])


async def _disconnected(request: Request, error: ClientDisconnect) -> Response:
    return response(request.url.path, Problem("unavailable", "the request did not arrive completely"), 408)


async def _failed(request: Request, error: Exception) -> Response:
    log.error("request.failed", method=request.method, path=request.url.path, exc_info=error)
    message = f"the gateway failed on this request: {error!r}; its log says more"
    return response(request.url.path, Problem("internal", message))
