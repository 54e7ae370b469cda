"""A session for client scripts. It returns `requests` responses whose status is already checked."""

from __future__ import annotations

import copy
import json as json_
from typing import TYPE_CHECKING, Any

from determined.common.api import authentication
from determined.common.api.certs import Cert
from determined.transport import rest
from determined.transport.address import master_url

if TYPE_CHECKING:
    import requests

_CONNECT_S = 10.0
Json = Any


class Session:
    """Sends requests to one master as one user. `determined.common.api.errors` defines what they raise.

    If `auth` is None, `authentication.cli_auth` is used, or else no token. `max_retries` is how often a
    repeatable request is retried, or a urllib3 Retry.
    """

    def __init__(
        self,
        master: str | None,
        user: str | None,
        auth: authentication.Authentication | None,
        cert: Cert | None,
        max_retries: Any = None,
    ) -> None:
        self._master, self._user, self._auth = master_url(master), user, auth or authentication.cli_auth
        self._cert, self._max_retries = cert, max_retries
        self.speaking = rest.Session(
            self._master,
            pauses=_pauses(max_retries),
            verify=cert.bundle if cert else None,
            cert_name=cert.name if cert else None,
        )
        self.speaking.user = user
        if self._auth is not None:
            self.speaking.token = self._auth.get_session_token(must=False) or None
            self.speaking.user = self._auth.get_session_user()

    @classmethod
    def around(cls, speaking: rest.Session) -> Session:
        """Return a session that asks as one that exists: the same master, user and connections."""
        session = cls(speaking.master, speaking.user, None, None)
        session.speaking = speaking
        return session

    def with_retry(self, retry: Any) -> Session:
        """Return the same session with a different retry setting."""
        session, pauses = copy.copy(self), _pauses(retry)
        session._max_retries, session.speaking = retry, copy.copy(self.speaking)
        session.speaking.pauses = rest.default_pauses() if pauses is None else pauses
        return session

    def get(
        self,
        path: str,
        params: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        timeout: Any = None,
        stream: bool = False,
    ) -> requests.Response:
        """Send a GET request. With `stream`, the body is read incrementally."""
        return self._ask("GET", path, params, headers, timeout, stream=stream)

    def delete(
        self,
        path: str,
        params: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        timeout: Any = None,
    ) -> requests.Response:
        """Send a DELETE request."""
        return self._ask("DELETE", path, params, headers, timeout)

    def post(
        self,
        path: str,
        params: dict[str, Any] | None = None,
        json: Json = None,
        data: str | bytes | None = None,
        headers: dict[str, str] | None = None,
        timeout: Any = None,
    ) -> requests.Response:
        """POST a value as JSON, or `data` unchanged."""
        return self._ask("POST", path, params, headers, timeout, data=_body(json, data))

    def patch(
        self,
        path: str,
        params: dict[str, Any] | None = None,
        json: Json = None,
        data: str | bytes | None = None,
        headers: dict[str, str] | None = None,
        timeout: Any = None,
    ) -> requests.Response:
        """PATCH a value as JSON, or `data` unchanged."""
        return self._ask("PATCH", path, params, headers, timeout, data=_body(json, data))

    def put(
        self,
        path: str,
        params: dict[str, Any] | None = None,
        json: Json = None,
        data: str | bytes | None = None,
        headers: dict[str, str] | None = None,
        timeout: Any = None,
    ) -> requests.Response:
        """PUT a value as JSON, or `data` unchanged."""
        return self._ask("PUT", path, params, headers, timeout, data=_body(json, data))

    def _ask(
        self,
        method: str,
        path: str,
        params: dict[str, Any] | None,
        headers: dict[str, str] | None,
        timeout: Any,
        **options: Any,
    ) -> requests.Response:
        if timeout is not None:
            options["timeout"] = timeout if isinstance(timeout, tuple) else (_CONNECT_S, timeout)
        path = path if path.startswith("/") else f"/{path}"
        return self.speaking.answer(method, path, params=params, headers=headers, **options)


def _body(json: Json, data: str | bytes | None) -> bytes | None:
    if data is not None:
        return data.encode() if isinstance(data, str) else data
    return None if json is None else json_.dumps(json).encode()


def _pauses(retries: Any) -> tuple[float, ...] | None:
    if retries is None:
        return None
    total = retries if isinstance(retries, int) else int(retries.total or 0)
    first = 0.5 if isinstance(retries, int) else float(retries.backoff_factor or 0)
    return tuple(first * 2**retry for retry in range(total))
