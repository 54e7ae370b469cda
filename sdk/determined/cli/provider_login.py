"""`det user login --provider`: sign in with the cluster's provider of identities, in a browser.

The browser brings back a ticket to a port of this machine. It passes through an address, so it is of no use
to whoever sees it: the token is given for it to who knows what the challenge was made of.
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
    """Name and token of whoever signs in; raises `Failure` when nobody does in time."""
    providers = session.get("/api/v1/master").get("ssoProviders") or []
    if not providers:
        raise Failure("this cluster has no provider to sign in with: det user login NAME")
    verifier = secrets.token_urlsafe(32)
    with _listening() as server:
        challenge = hashlib.sha256(verifier.encode()).hexdigest()
        asked = urlencode({"port": server.server_address[1], "challenge": challenge})
        address = f"{session.master}{providers[0]['ssoUrl']}?{asked}"
        print(f"Sign in with {providers[0]['name']} in the browser of this machine:\n{address}", flush=True)
        webbrowser.open(address)
        for ticket in _tickets(server, within_s):
            # Anybody on this machine can bring something that is none.
            with contextlib.suppress(errors.UnauthenticatedException):
                body = {"ticket": ticket, "verifier": verifier}
                answer = session.post("/api/v1/auth/oidc/token", body)
                return str(answer["user"]["username"]), str(answer["token"])
    raise Failure(
        "sign-in was not completed; without a browser here, make an API token in the web UI's settings"
    )


class _Server(http.server.HTTPServer):
    tickets: list[str]


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    timeout = 5.0

    def do_GET(self) -> None:
        """Somebody comes back."""
        self.server.tickets += parse_qs(urlsplit(self.path).query).get("ticket", [])
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(_PAGE.encode())

    def log_message(self, *_: object) -> None:
        """Nothing: a ticket is a secret."""


@contextlib.contextmanager
def _listening() -> Iterator[_Server]:
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
