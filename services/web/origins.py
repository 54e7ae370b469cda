"""Rejects requests that a browser sends for another site's page, and says what it may take answers for.

A page may point its own name at this machine (DNS rebinding). Its requests are then same-origin for the
browser, and only their `Host` reveals it. Or it sends them cross-origin with our cookie (CSRF); then `Origin`
reveals it.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from typing import Protocol
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from det_contracts.problems import Problem
from services.kit.host_addresses import parse_address, split_list
from services.web import errors, tickets
from services.web.pacing_middleware import Pace

MISDIRECTED = 421
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
NON_BROWSER_HEADERS = ("authorization", "grpc-metadata-x-allocation-token")
"""A page cannot send these cross-origin without a preflight request, which is not answered here."""
TASK_PAGES = "/proxy/"
"""Their headers are those of the tasks that serve them."""
ANSWER_HEADERS = {b"x-content-type-options": b"nosniff", b"referrer-policy": b"same-origin"}
"""Headers of every answer that does not say otherwise: what users wrote, such as a log, is never taken for a
script or a page, and no other site learns the address of a page that links there."""
_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_.-]+))(?::[0-9]{1,5})?", re.IGNORECASE)


class HostSettings(Protocol):
    """The names of this server, from its settings."""

    @property
    def host(self) -> str:
        """The address it listens on."""

    @property
    def allowed_hosts(self) -> str:
        """Its other names, separated by commas."""

    @property
    def allowed_origins(self) -> str:
        """Origins whose pages may act for the logged-in user, separated by commas."""


class OriginMiddleware:
    """Refuses requests under foreign host names, and changes requested by another site's page."""

    def __init__(self, app: ASGIApp, settings: HostSettings, pace: Pace) -> None:
        self._app, self._pace = app, pace
        self._names = HostNames([settings.host, socket.gethostname(), *split_list(settings.allowed_hosts)])
        self._origins = {origin.lower().rstrip("/") for origin in split_list(settings.allowed_origins)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = send if scope["path"].startswith(TASK_PAGES) else _with_headers(send)
        request = Request(scope)
        if (host := self._names.foreign_host(request)) is not None:
            message = f"this gateway is not known as '{host}'; if it is, add it to STEADFAST_ALLOWED_HOSTS"
            answer = errors.response(scope["path"], Problem("permission_denied", message), MISDIRECTED)
        elif (origin := self._foreign_origin(request)) is not None:
            message = (
                f"pages of '{origin}' may not make changes here; to allow it, set STEADFAST_ALLOWED_ORIGINS"
            )
            answer = errors.response(scope["path"], Problem("permission_denied", message))
        else:
            await self._app(scope, receive, send)
            return
        await self._pace.run(answer, scope, receive, send)

    def _foreign_origin(self, request: Request) -> str | None:
        """Return the other site whose page asks for a change, or None."""
        if request.method in SAFE_METHODS or any(name in request.headers for name in NON_BROWSER_HEADERS):
            return None
        if tickets.has_ticket(request.url.path):
            # A task's page calls its own task, authorised by the ticket in its address and never by a cookie.
            return None
        origin = request.headers.get("origin")
        if origin is None:
            # Browsers omit it only for same-origin pages, and then Sec-Fetch-Site says so.
            site = request.headers.get("sec-fetch-site", "none")
            return None if site in ("none", "same-origin") else "another site"
        ours = origin.lower() in self._origins or _is_own(origin.lower(), request)
        return None if ours else origin[:200]


def _with_headers(send: Send) -> Send:
    async def complete(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            present = {name.lower() for name, _ in headers}
            headers += [item for item in ANSWER_HEADERS.items() if item[0] not in present]
            message = {**message, "headers": headers}
        await send(message)

    return complete


class HostNames:
    """The host names under which this gateway may be addressed."""

    def __init__(self, names: Iterable[str]) -> None:
        """`*.example.org` matches all names below a domain, `*` matches any."""
        patterns = [name.lower() for name in names]
        self._any = "*" in patterns
        self._names = {"localhost", *patterns}
        self._above = tuple(
            [".localhost", *(pattern[1:] for pattern in patterns if pattern.startswith("*."))]
        )

    def foreign_host(self, connection: HTTPConnection) -> str | None:
        """Return the host name of a request if it is foreign, else None. No name at all is accepted."""
        hosts = connection.headers.getlist("host")
        if not hosts or self._any:
            # HTTP/1.0, as used by probes; browsers always send a host.
            return None
        # With two hosts a proxy may decide by one and this gateway by the other.
        is_known = len(hosts) == 1 and self._is_known(hosts[0])
        return None if is_known else ", ".join(hosts)[:200]

    def _is_known(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = (match["v6"] or match["name"]).lower().rstrip(".")
        # A numeric address cannot be a rebound name.
        return name in self._names or name.endswith(self._above) or parse_address(name) is not None


def _is_own(origin: str, request: Request) -> bool:
    parts = urlsplit(origin)
    # Behind a TLS-terminating proxy, we see plain HTTP while the page sees HTTPS.
    schemes = ("https",) if request.url.scheme == "https" else ("http", "https")
    return parts.scheme in schemes and parts.netloc == request.headers.get("host", "").lower()
