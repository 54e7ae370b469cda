"""Requests to the provider: only to permitted addresses, limited in size and time. Blocking."""

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

MAX_BYTES = 1 << 20
WITHIN_S = 8.0
"""Timeout for a complete answer, in seconds."""
CONNECT_S = 3.0


class ProviderUnavailable(Exception):
    """The provider does not answer properly. The text says how, without quoting the provider."""


class NotAuthenticated(Exception):
    """A user has not proved their identity. The text tells them why."""


class Answer(msgspec.Struct, frozen=True):
    """A provider's answer, with the part of an HTTP client's interface that Authlib uses."""

    url: str
    status_code: int
    body: bytes

    def raise_for_status(self) -> None:
        """Raise `ProviderUnavailable` for an error status."""
        if self.status_code >= 300:
            raise ProviderUnavailable(f"the provider answers {self.status_code} at {self.url}")

    def json(self) -> Any:
        """The body as JSON. Raises ValueError."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("the answer is nested too deeply") from None

    def record(self) -> dict[str, Any]:
        """The JSON object of a successful answer. Raises `ProviderUnavailable`."""
        self.raise_for_status()
        try:
            document = self.json()
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise ProviderUnavailable(f"the provider's answer at {self.url} is not a JSON object")
        return document


class ProviderClient:
    """Sends requests to the provider, with a new connection for each."""

    def __init__(self, addresses: Addresses, authorities: Path | None) -> None:
        """`authorities`: a file of CA certificates to trust in addition to the system's."""
        self._addresses = addresses
        self._authorities = authorities

    @cached_property
    def _context(self) -> ssl.SSLContext:
        return client_context(self._authorities)

    def get(self, url: str, token: str = "") -> Answer:
        """Send a GET request, with an access token if given. Raises `ProviderUnavailable`."""
        return self._request("GET", url, {"Authorization": f"Bearer {token}"} if token else {}, None)

    def post(self, url: str, data: Mapping[str, str], headers: Mapping[str, str], auth: Any) -> Answer:
        """Send a form as Authlib's client does; `auth` adds the client's credentials.

        Raises `ProviderUnavailable`.
        """
        url, headers, body = auth.prepare("POST", url, dict(headers), urlencode(data))
        return self._request("POST", url, headers, body)

    def _request(self, method: str, url: str, headers: Mapping[str, str], body: str | None) -> Answer:
        if not is_safe(url):
            raise ProviderUnavailable("the provider names an address that is not https://")
        timeout = urllib3.Timeout(connect=CONNECT_S, read=WITHIN_S)
        no_retries = urllib3.Retry(0, redirect=0)
        all_headers = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        try:
            with pool_manager(self._addresses, timeout, no_retries, WITHIN_S, self._context) as pool:
                answer = pool.request(
                    method,
                    url,
                    body=body,
                    headers=all_headers,
                    redirect=False,
                    retries=False,
                    preload_content=False,
                )
                return Answer(url, answer.status, _read(answer, url))
        except AddressRefused as error:
            raise ProviderUnavailable(str(error)) from error
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise ProviderUnavailable(f"the provider does not answer at {url}") from error


def _read(answer: urllib3.BaseHTTPResponse, url: str) -> bytes:
    """Read the body. Raises `ProviderUnavailable` if it is too large."""
    # Not decompressed: a small answer could become gigabytes.
    body: bytes = answer.read(MAX_BYTES + 1, decode_content=False)
    answer.close()
    if len(body) > MAX_BYTES:
        raise ProviderUnavailable(f"the provider answers with more than {MAX_BYTES} bytes at {url}")
    return body
