"""Assembles the routes into one application, and runs the HTTP server alongside the fold."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import resource
import socket
import ssl
from collections.abc import Iterator

import structlog
import uvicorn
from fastapi import APIRouter, FastAPI, Request
from starlette.types import Scope

from det_contracts.problems import Problem, Refused
from services.gateway.http.route_index import RouteIndex, routers_by_word
from services.rest_requests.api_call import ApiCall
from services.rest_requests.authz import guard
from services.rest_requests.backend import Backend
from services.rest_routes.routers import API_ROUTES, OTHER_ROUTES
from services.web import errors, small_chunks
from services.web.body_limits import BodyLimitsMiddleware
from services.web.connection import Connections, HttpConnection
from services.web.origins import OriginMiddleware
from services.web.pacing_middleware import Client, Pace, PacingMiddleware
from services.web.query import QueryNamesMiddleware
from services.web.request_metrics import MetricsMiddleware

log = structlog.get_logger()
BACKLOG = 512
CLOSE_PATIENCE_S = 1
KEEPALIVE_IDLE_S = 60
RESERVED_FILES = 256
"""File descriptors kept back for everything but connections."""


@functools.cache
def surface() -> APIRouter:
    """Every route of the REST API.

    Routes find the backend through the application that received the request. So a single set of routes,
    which is slow to prepare, serves all applications in the process.
    """
    # Clients send JSON without a content type, which is refused by default.
    made = APIRouter(strict_content_type=False)
    for part in API_ROUTES:
        part.add_to(made, errors.API, guard)
    for part in OTHER_ROUTES:
        part.add_to(made, "", guard)
    return made


@functools.cache
def _routers() -> dict[str, APIRouter]:
    return routers_by_word(surface().routes)


def prepare() -> None:
    """Prepare all routes now, which takes a fifth of a second and would otherwise block the event loop."""
    _routers()


def application(backend: Backend) -> FastAPI:
    """Build the REST application over a backend."""
    app = FastAPI(
        routes=surface().routes, openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    app.router.middleware_stack = RouteIndex(_routers(), app.router.middleware_stack)
    app.state.backend = backend
    errors.install(app)
    if backend.tracer is not None:
        from services.web.tracing_middleware import TracingMiddleware

        app.add_middleware(TracingMiddleware, tracer=backend.tracer)
    # The last one added is the outermost: a request from a foreign page is refused before a byte of its body
    # is read, and its body before its turn is waited for.
    pace = Pace(backend.limits.pacing, backend.limits.request_turns, functools.partial(_client_of, app))
    app.add_middleware(PacingMiddleware, pace=pace)
    app.add_middleware(MetricsMiddleware, measures=backend.measures)
    app.add_middleware(QueryNamesMiddleware)
    authenticate = functools.partial(_authentication_problem, app)
    app.add_middleware(BodyLimitsMiddleware, authenticate=authenticate, pace=pace)
    app.add_middleware(OriginMiddleware, settings=backend.settings, pace=pace)
    return app


def _client_of(app: FastAPI, scope: Scope) -> Client:
    """Return who sends a request, as far as this gateway has read the log."""
    return ApiCall(Request({**scope, "app": app})).client


async def _authentication_problem(app: FastAPI, scope: Scope) -> Problem | None:
    """Return why a sender is not authenticated, before much of the body is read; None if it is."""
    call = ApiCall(Request({**scope, "app": app}))
    await call.catalogue.catch_up()
    try:
        call.session()
    except Refused as refusal:
        return refusal.problem
    return None


class Server(uvicorn.Server):
    """Uvicorn without signal handlers: the surrounding service handles signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listening_socket(host: str, port: int) -> socket.socket:
    """Open a listening socket whose connections send small answers without delay.

    On Linux, connections inherit TCP_NODELAY from the listening socket. Without it, an answer on a kept-alive
    connection may wait 40 ms for the client's delayed acknowledgement.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Detect clients whose machine is gone: the kernel sends probes and eventually gives up.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_IDLE_S // 4)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise OSError(f"cannot listen on {host}:{port}: {error.strerror}; set STEADFAST_PORT") from error
    return listener


def raise_connection_limit() -> int:
    """Raise the limit of open files to the hard limit, since each open page holds a connection all day.

    Returns how many connections fit.
    """
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    return max(hard_limit - RESERVED_FILES, hard_limit // 2)


async def serve(
    app: FastAPI, listener: socket.socket, connections: Connections, tls: ssl.SSLContext | None = None
) -> None:
    """Serve requests until cancelled, over TLS if a context is given. Open streams are then cut off."""
    small_chunks.install()
    config = uvicorn.Config(
        app,
        http=functools.partial(HttpConnection, connections),  # type: ignore[arg-type]
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=CLOSE_PATIENCE_S,
    )
    config.load()
    # Uvicorn itself only accepts file paths, and its errors are less clear.
    config.ssl = tls
    server = Server(config)
    serving = asyncio.ensure_future(server.serve([listener]))
    host, port = listener.getsockname()[:2]
    log.info("gateway.listening", host=host, port=port)
    try:
        # Uvicorn is asked to end and not cancelled: it then closes its connections itself.
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await asyncio.wait([serving])
