"""Requests to the provider: to addresses that may be asked, bounded in size and time. Blocking."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import urllib3

from services.kit.addresses import Addresses, AddressRefused
from services.kit.guarded_http import pool_manager
from services.kit.tls import client_context
from services.people.oidc.settings import is_safe

MOST_BYTES = 1 << 20
WITHIN_S = 8.0
"""Until when an answer must be there, whole."""
CONNECT_S = 3.0


class ProviderAway(Exception):
    """The provider does not answer as it should; the text says how, and nothing that it said."""


class NotProven(Exception):
    """Somebody has not proved who they are; the text says why, for them."""


class Answer(msgspec.Struct, frozen=True):
    """What a provider answered; as much of an HTTP client's answer as Authlib looks at."""

    url: str
    status_code: int
    body: bytes

    def raise_for_status(self) -> None:
        """Raises `ProviderAway` for an error."""
        if self.status_code >= 300:
            raise ProviderAway(f"the provider answers {self.status_code} at {self.url}")

    def json(self) -> Any:
        """The JSON; raises ValueError."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("the answer is nested too deeply") from None

    def record(self) -> dict[str, Any]:
        """A JSON object of a request that succeeded; raises `ProviderAway`."""
        self.raise_for_status()
        try:
            found = self.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ProviderAway(f"what the provider answers at {self.url} is no JSON object")
        return found


class Asking:
    """Connections to the provider, which live for one request each."""

    def __init__(self, addresses: Addresses, authorities: Path | None) -> None:
        """`authorities`: a file of those that vouch for the provider, beside the system's."""
        self._addresses = addresses
        self._authorities = authorities

    @cached_property
    def _context(self) -> ssl.SSLContext:
        return client_context(self._authorities)

    def get(self, url: str, token: str = "") -> Answer:
        """Read something, with an access token if one is given; raises `ProviderAway`."""
        return self._ask("GET", url, {"Authorization": f"Bearer {token}"} if token else {}, None)

    def post(self, url: str, data: Mapping[str, str], headers: Mapping[str, str], auth: Any) -> Answer:
        """Send a form, as Authlib's client does; `auth` adds by what the client is known."""
        url, headers, body = auth.prepare("POST", url, dict(headers), urlencode(data))
        return self._ask("POST", url, headers, body)

    def _ask(self, method: str, url: str, headers: Mapping[str, str], body: str | None) -> Answer:
        if not is_safe(url):
            raise ProviderAway("the provider names an address that is not https://")
        timeout = urllib3.Timeout(connect=CONNECT_S, read=WITHIN_S)
        never = urllib3.Retry(0, redirect=0)
        wanted = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        try:
            with pool_manager(self._addresses, timeout, never, WITHIN_S, self._context) as pool:
                answer = pool.request(
                    method,
                    url,
                    body=body,
                    headers=wanted,
                    redirect=False,
                    retries=False,
                    preload_content=False,
                )
                return Answer(url, answer.status, _read(answer, url))
        except AddressRefused as error:
            raise ProviderAway(str(error)) from error
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise ProviderAway(f"the provider does not answer at {url}") from error


def _read(answer: urllib3.BaseHTTPResponse, url: str) -> bytes:
    """What was said; a provider that says more than it has to is not listened to."""
    said: bytes = answer.read(MOST_BYTES + 1, decode_content=False)
    answer.close()
    if len(said) > MOST_BYTES:
        raise ProviderAway(f"the provider answers with more than {MOST_BYTES} bytes at {url}")
    return said
