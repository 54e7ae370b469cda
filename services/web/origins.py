"""Requests that a browser sends for a page of somebody else.

A page may have its own name lead to this machine (DNS rebinding): then its requests are of the same origin
for the browser, and only their `Host` tells. Or it sends them across origins with our cookie (CSRF): then
`Origin` does.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from typing import Protocol
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from det_contracts.problems import Problem
from services.kit.hosts_named import listed, parsed
from services.web import errors, tickets

MISDIRECTED = 421
READING = ("GET", "HEAD", "OPTIONS")
HEADERS_OF_CLIENTS = ("authorization", "grpc-metadata-x-allocation-token")
"""No page can send these across origins without asking first, which is not answered here."""
_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_.-]+))(?::[0-9]{1,5})?", re.IGNORECASE)


class Known(Protocol):
    """How this server is called, as its settings say."""

    @property
    def host(self) -> str:
        """Address that it listens on."""

    @property
    def allowed_hosts(self) -> str:
        """Its other names, with commas."""

    @property
    def allowed_origins(self) -> str:
        """Origins whose pages may act for whoever is logged in, with commas."""


class Origins:
    """Refuses requests for other names than ours, and changes in whose name another site's page asks."""

    def __init__(self, app: ASGIApp, settings: Known) -> None:
        self._app = app
        self._names = Names([settings.host, socket.gethostname(), *listed(settings.allowed_hosts)])
        self._origins = {one.lower().rstrip("/") for one in listed(settings.allowed_origins)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        if (host := self._names.stranger(request)) is not None:
            told = f"this gateway is not known as '{host}'; if it is, add that to STEADFAST_ALLOWED_HOSTS"
            answer = errors.response(scope["path"], Problem("permission_denied", told), MISDIRECTED)
        elif (origin := self._foreign(request)) is not None:
            told = (
                f"a page of '{origin}' may not change anything here; to let it, set STEADFAST_ALLOWED_ORIGINS"
            )
            answer = errors.response(scope["path"], Problem("permission_denied", told))
        else:
            await self._app(scope, receive, send)
            return
        await answer(scope, receive, send)

    def _foreign(self, request: Request) -> str | None:
        """The other site whose page asks for a change; None where none does."""
        if request.method in READING or any(name in request.headers for name in HEADERS_OF_CLIENTS):
            return None
        if tickets.are_in(request.url.path):
            # A task's page asks its own task: by what its address holds, and never by a cookie.
            return None
        origin = request.headers.get("origin")
        if origin is None:
            # Browsers leave it out only for pages of the same origin, and then say that it is so.
            site = request.headers.get("sec-fetch-site", "none")
            return None if site in ("none", "same-origin") else "another site"
        ours = origin.lower() in self._origins or _is_own(origin.lower(), request)
        return None if ours else origin[:200]


class Names:
    """What this gateway may be called by."""

    def __init__(self, names: Iterable[str]) -> None:
        """Names; `*.example.org` for all below one, `*` for any."""
        found = [one.lower() for one in names]
        self._any = "*" in found
        self._names = {"localhost", *found}
        self._above = tuple([".localhost", *(one[1:] for one in found if one.startswith("*."))])

    def stranger(self, connection: HTTPConnection) -> str | None:
        """The name that a request calls us by, if it is not ours; None also where none is given."""
        hosts = connection.headers.getlist("host")
        if not hosts or self._any:
            # HTTP/1.0, as probes speak it: no browser does.
            return None
        known = len(hosts) == 1 and self._knows(hosts[0])
        return None if known else ", ".join(hosts)[:200]

    def _knows(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = (match["v6"] or match["name"]).lower().rstrip(".")
        # A number is no name that somebody could have led elsewhere.
        return name in self._names or name.endswith(self._above) or parsed(name) is not None


def _is_own(origin: str, request: Request) -> bool:
    parts = urlsplit(origin)
    # Behind a proxy that ends TLS we speak plain HTTP to what is https to the page.
    schemes = ("https",) if request.url.scheme == "https" else ("http", "https")
    return parts.scheme in schemes and parts.netloc == request.headers.get("host", "").lower()
