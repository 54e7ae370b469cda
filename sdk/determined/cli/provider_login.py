"""`det user login --provider`: signs in with the cluster's identity provider, in a browser.

The browser delivers a ticket to a port on this machine. The ticket is part of a URL, so by itself it is
useless: the token is issued only to the client that knows the challenge's secret.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import secrets
import time
import webbrowser
from collections.abc import Iterator
from urllib.parse import parse_qs, urlencode, urlsplit

from determined.cli.failure import Failure
from determined.common.api import errors
from determined.transport.rest import Session

WITHIN_S = 600.0
_PAGE = (
    "<!doctype html><meta charset=utf-8><title>det</title>"
    "<p>You may close this page and go back to the terminal."
)


def sign_in(session: Session, within_s: float = WITHIN_S) -> tuple[str, str]:
    """Return the name and token of the user who signs in. Raises `Failure` if nobody does in time."""
    providers = session.get("/api/v1/master").get("ssoProviders") or []
    if not providers:
        raise Failure("this cluster has no provider to sign in with: det user login NAME")
    verifier = secrets.token_urlsafe(32)
    with _listening() as server:
        challenge = hashlib.sha256(verifier.encode()).hexdigest()
        query = urlencode({"port": server.server_address[1], "challenge": challenge})
        address = f"{session.master}{providers[0]['ssoUrl']}?{query}"
        print(f"Sign in with {providers[0]['name']} in the browser of this machine:\n{address}", flush=True)
        webbrowser.open(address)
        for ticket in _tickets(server, within_s):
            # Any program on this machine can send an invalid ticket.
            with contextlib.suppress(errors.UnauthenticatedException):
                body = {"ticket": ticket, "verifier": verifier}
                answer = session.post("/api/v1/auth/oidc/token", body)
                return str(answer["user"]["username"]), str(answer["token"])
    raise Failure(
        "sign-in was not completed; without a browser here, create an API token in the web UI's settings"
    )


class _Server(http.server.HTTPServer):
    tickets: list[str]


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    # A program that connects and sends nothing must not keep the browser out.
    timeout = 5.0

    def do_GET(self) -> None:
        """Receive the ticket from the browser."""
        self.server.tickets += parse_qs(urlsplit(self.path).query).get("ticket", [])
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(_PAGE.encode())

    def log_message(self, *_: object) -> None:
        """Log nothing, because a ticket is a secret."""


@contextlib.contextmanager
def _listening() -> Iterator[_Server]:
    # A free port, and only for programs on this machine.
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.tickets = []
        yield server


def _tickets(server: _Server, within_s: float) -> Iterator[str]:
    until = time.monotonic() + within_s
    while (left := until - time.monotonic()) > 0:
        server.timeout = left
        server.handle_request()
        while server.tickets:
            yield server.tickets.pop()
