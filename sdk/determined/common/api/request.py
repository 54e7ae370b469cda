"""Functions for single requests, under the names that client scripts import."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING, Any
from urllib.parse import ParseResult, urljoin, urlsplit

from determined.common.api import authentication
from determined.common.api._session import Session
from determined.common.api.certs import Cert
from determined.transport.address import master_url

if TYPE_CHECKING:
    import requests

Auth = authentication.Authentication


def parse_master_address(master_address: str) -> ParseResult:
    """Split the address into its parts, including scheme and port."""
    parts = urlsplit(master_url(master_address))
    return ParseResult(parts.scheme, parts.netloc, parts.path, "", "", "")


def make_url(master_address: str, suffix: str) -> str:
    """Return the URL of a path on a master."""
    return urljoin(master_url(master_address) + "/", suffix.lstrip("/"))


def do_request(
    method: str,
    host: str,
    path: str,
    params: dict[str, Any] | None = None,
    json: Any = None,
    data: str | bytes | None = None,
    headers: dict[str, str] | None = None,
    authenticated: bool = True,
    auth: Auth | None = None,
    cert: Cert | None = None,
    stream: bool = False,
    timeout: Any = None,
    max_retries: Any = None,
) -> requests.Response:
    """Send one request. `auth` is as for a `Session`; no token is sent unless `authenticated`."""
    session = Session(host, None, auth, cert, max_retries)
    if not authenticated:
        session.speaking.token = None
    if method.upper() == "GET":
        return session.get(path, params, headers, timeout, stream)
    if method.upper() == "DELETE":
        return session.delete(path, params, headers, timeout)
    send = getattr(session, method.lower())
    answer: requests.Response = send(path, params, json, data, headers, timeout)
    return answer


def get(
    host: str,
    path: str,
    params: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    authenticated: bool = True,
    auth: Auth | None = None,
    cert: Cert | None = None,
    stream: bool = False,
    timeout: Any = None,
) -> requests.Response:
    """Send a GET request."""
    return do_request(
        "GET", host, path, params, None, None, headers, authenticated, auth, cert, stream, timeout
    )


def delete(
    host: str,
    path: str,
    params: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    authenticated: bool = True,
    auth: Auth | None = None,
    cert: Cert | None = None,
    timeout: Any = None,
) -> requests.Response:
    """Send a DELETE request."""
    return do_request(
        "DELETE", host, path, params, None, None, headers, authenticated, auth, cert, False, timeout
    )


def post(
    host: str,
    path: str,
    json: Any = None,
    headers: dict[str, str] | None = None,
    authenticated: bool = True,
    auth: Auth | None = None,
    cert: Cert | None = None,
    timeout: Any = None,
) -> requests.Response:
    """POST a value as JSON."""
    return do_request(
        "POST", host, path, None, json, None, headers, authenticated, auth, cert, False, timeout
    )


def patch(
    host: str,
    path: str,
    json: Any,
    headers: dict[str, str] | None = None,
    authenticated: bool = True,
    auth: Auth | None = None,
    cert: Cert | None = None,
    timeout: Any = None,
) -> requests.Response:
    """PATCH a value as JSON."""
    return do_request(
        "PATCH", host, path, None, json, None, headers, authenticated, auth, cert, False, timeout
    )


def put(
    host: str,
    path: str,
    json: Any = None,
    headers: dict[str, str] | None = None,
    authenticated: bool = True,
    auth: Auth | None = None,
    cert: Cert | None = None,
    timeout: Any = None,
) -> requests.Response:
    """PUT a value as JSON."""
    return do_request("PUT", host, path, None, json, None, headers, authenticated, auth, cert, False, timeout)


def browser_open(host: str, path: str) -> str:
    """Open a page of a master in the browser. Returns its URL."""
    url = make_url(host, path)
    webbrowser.open(url)
    return url
