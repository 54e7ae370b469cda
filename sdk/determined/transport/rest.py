"""HTTP client for the master: tokens, retries, errors, uploads and record streams (client spec, section 1).

`requests` is imported on first use, because importing it takes longer than the rest of a short command.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from determined.common.api import errors
from determined.transport import certificates

if TYPE_CHECKING:
    import requests

Params = Mapping[str, Any]
Progress = Callable[[int], None]

RETRIED_STATUSES = frozenset({502, 503, 504})
TOO_MANY = 429
PASSING_STATUSES = RETRIED_STATUSES | {TOO_MANY}
"""After these, the same request may succeed later."""
_PATIENCE_S = 15.0
"""Longer pauses requested by a gateway are not honored."""
# Not POST and PATCH: one that got no response may have been carried out.
_REPEATABLE = frozenset({"GET", "PUT", "DELETE"})
_BY_STATUS = {
    401: errors.UnauthenticatedException,
    403: errors.ForbiddenException,
    404: errors.NotFoundException,
}
_CONNECT_S = 10.0
_ANSWER_S = 120.0
_SILENCE_S = 90.0


def default_pauses() -> tuple[float, ...]:
    """Return the seconds to wait before each retry: starting at 0.5 and doubling, five times.

    `DET_RETRY_CONFIG` (JSON with `total` and `backoff_factor`) overrides this.
    """
    config = json.loads(os.environ.get("DET_RETRY_CONFIG") or "{}")
    first = float(config.get("backoff_factor", 0.5))
    return tuple(first * 2**retry for retry in range(int(config.get("total", 5))))


class Session:
    """A user's session with one master.

    Paths are as in the REST spec: `/api/v1/...`, or other paths at the root. All calls raise
    `MasterNotFoundException` if no master answers, and otherwise the exception for the status (see `errors`).
    `identity.sign_in` sets `token` and `user`. Close the session, or use it in a `with` statement. `verify`
    says how to verify the master's certificate (True: default authorities, False: no check, or a file path),
    and `cert_name` is the name expected in it. By default, the user's settings apply (see `certificates`).
    """

    def __init__(
        self,
        master: str,
        *,
        pauses: tuple[float, ...] | None = None,
        verify: bool | str | None = None,
        cert_name: str | None = None,
    ) -> None:
        self.master = master
        self._verify, self._cert_name = verify, cert_name
        self.token: str | None = None
        self.user: str | None = None
        self.pauses = default_pauses() if pauses is None else pauses
        self._http: requests.Session | None = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections. The session can be used again."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def get(self, path: str, params: Params | None = None) -> Any:
        """Send a GET request and return the JSON response."""
        return _decoded(self._send("GET", path, params=params))

    def post(
        self,
        path: str,
        body: Any = None,
        *,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
        on_sent: Progress | None = None,
    ) -> Any:
        """Send a POST request, only once, and return the JSON response.

        `on_sent` gets the bytes sent so far.
        """
        encoded = _encoded({} if body is None else body)
        data = encoded if on_sent is None else _Counted(encoded, on_sent)
        return _decoded(self._send("POST", path, data=data, params=params, headers=headers))

    def put(self, path: str, body: Any = None) -> Any:
        """Send a PUT request and return the JSON response."""
        return _decoded(self._send("PUT", path, data=_encoded(body)))

    def patch(self, path: str, body: Any) -> Any:
        """Send a PATCH request, only once, and return the JSON response."""
        return _decoded(self._send("PATCH", path, data=_encoded(body)))

    def delete(self, path: str, body: Any = None) -> Any:
        """Send a DELETE request and return the JSON response."""
        return _decoded(self._send("DELETE", path, data=None if body is None else _encoded(body)))

    def stream(self, path: str, params: Params | None = None) -> Iterator[Any]:
        """Yield the records of a streaming response as they arrive.

        Raises `MasterNotFoundException` if the stream breaks off or is silent for 90 s, and the exception for
        the status if an error is reported within the stream.
        """
        import requests

        with self._send("GET", path, params=params, stream=True, timeout=(_CONNECT_S, _SILENCE_S)) as answer:
            try:
                # None passes lines on as they arrive. A size would hold them back until that many bytes are
                # there.
                for line in answer.iter_lines(chunk_size=None):
                    if line:
                        yield _record(line)
            except requests.RequestException as error:
                raise self._unreachable(error) from error

    @contextlib.contextmanager
    def open(self, path: str, accept: str) -> Iterator[IO[bytes]]:
        """Yield the undecoded body of a response as a file that can only be read forwards.

        Raises `MasterNotFoundException` if it breaks off, including from reads inside the `with` block.
        """
        import requests
        import urllib3

        headers = {"Accept": accept, "Accept-Encoding": "identity"}
        with self._send(
            "GET", path, headers=headers, stream=True, timeout=(_CONNECT_S, _SILENCE_S)
        ) as answer:
            try:
                yield cast("IO[bytes]", answer.raw)
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                raise self._broken_off(error) from error

    def answer(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send any request and return the checked response. Options are those of `requests`."""
        return self._send(method, path, **options)

    def _send(self, method: str, path: str, **options: Any) -> requests.Response:
        deadline = time.monotonic() + _ANSWER_S
        for pause in self.pauses:
            try:
                response = self._send_once(method, path, **options)
            except errors.UntrustedCertificate:
                raise
            except errors.MasterNotFoundException:
                # A master that accepts a request but stays silent has used up the time for retries.
                if method not in _REPEATABLE or time.monotonic() >= deadline:
                    raise
            else:
                again_s = _again_after(method, response)
                if again_s is None:
                    return _checked(response)
                response.close()
                pause = max(pause, again_s)
                # The first attempt has read the body to its end.
                if isinstance(options.get("data"), io.BytesIO):
                    options["data"].seek(0)
            time.sleep(pause)
        return _checked(self._send_once(method, path, **options))

    def _send_once(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **options: Any
    ) -> requests.Response:
        import requests

        kind = {"Content-Type": "application/json"} if options.get("data") is not None else {}
        http = self._connection()
        # Pass `verify` again; otherwise requests would prefer REQUESTS_CA_BUNDLE to the session's setting.
        options = {"timeout": (_CONNECT_S, _ANSWER_S), "verify": http.verify, "auth": self._sign, **options}
        try:
            return http.request(method, self.master + path, headers={**kind, **(headers or {})}, **options)
        except requests.RequestException as error:
            raise self._unreachable(error) from error

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        # As `auth` and not as a header, because requests lets an entry in ~/.netrc override the header.
        if self.token is not None:
            request.headers["Authorization"] = f"Bearer {self.token}"
        return request

    def _connection(self) -> requests.Session:
        if self._http is None:
            import requests

            self._http = requests.Session()
            if self.master.startswith("https:"):
                had_verify = self._verify is not None
                self._http.verify = self._verify if had_verify else certificates.verification(self.master)
                _accept_name(self._http, self._cert_name or certificates.expected_name())
        return self._http

    def _unreachable(self, error: requests.RequestException) -> errors.MasterNotFoundException:
        import requests

        if isinstance(error, requests.exceptions.SSLError) and "WRONG_VERSION_NUMBER" in str(error):
            return errors.MasterNotFoundException(
                f"{self.master} does not use TLS: its address begins with http://, not https://"
            )
        if isinstance(error, requests.exceptions.SSLError):
            return errors.UntrustedCertificate(
                f"the certificate of {self.master} is not trusted: {_root(error)}"
            )
        reason = _root(error)
        if "closed connection without response" in reason and self.master.startswith("http://"):
            reason += "; if it uses TLS, its address begins with https://"
        return errors.MasterNotFoundException(f"no answer from the master at {self.master}: {reason}")

    def _broken_off(self, error: Exception) -> errors.MasterNotFoundException:
        return errors.MasterNotFoundException(f"{self.master} broke off its response: {_root(error)}")


class Carrier(Protocol):
    """A session as held by scripts, which wraps one of these (see `determined.common.api.Session`)."""

    @property
    def speaking(self) -> Session:
        """The session that requests go through."""


AnySession = Session | Carrier


def speaking(session: AnySession) -> Session:
    """Return the underlying session, whichever of the two types a script passes."""
    return session if isinstance(session, Session) else session.speaking


class _Counted(io.BytesIO):
    """A request body that reports how far it has been read."""

    def __init__(self, data: bytes, on_sent: Progress) -> None:
        super().__init__(data)
        self._on_sent = on_sent

    def read(self, size: int | None = -1, /) -> bytes:
        chunk = super().read(size)
        self._on_sent(self.tell())
        return chunk


def _again_after(method: str, response: requests.Response) -> float | None:
    """Return the minimum wait before a retry, or None if the request must not be retried."""
    if response.status_code == TOO_MANY:
        # The request was not processed, so any method may be retried.
        text = response.headers.get("Retry-After", "")
        return float(text) if text.isdecimal() and float(text) <= _PATIENCE_S else None
    return 0.0 if method in _REPEATABLE and response.status_code in RETRIED_STATUSES else None


def is_passing(error: errors.BadRequestException) -> bool:
    """Whether the same request may succeed later: the master is away, restarts, or has too much to do."""
    if isinstance(error, errors.StatusException):
        return error.status_code in PASSING_STATUSES
    return not isinstance(error, errors.UntrustedCertificate)


def _encoded(body: Any) -> bytes:
    return json.dumps(body).encode()


def _accept_name(http: requests.Session, name: str | None) -> None:
    import requests.adapters
    import urllib3

    class NamedAdapter(requests.adapters.HTTPAdapter):
        def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
            super().init_poolmanager(*args, **kwargs, assert_hostname=name, server_hostname=name)

    if name is not None:
        http.mount("https://", NamedAdapter())
    if http.verify is False:
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)


def _root(error: BaseException) -> str:
    """Return the innermost reason. The outer ones repeat the URL and class names."""
    inner = error
    while (deeper := inner.__cause__ or inner.__context__) is not None:
        inner = deeper
    return str(inner) or type(inner).__name__


_ADVICE = "is this a master? Its address is HOST:PORT, without a path unless a proxy adds one"


def _checked(response: requests.Response) -> requests.Response:
    if response.ok:
        return response
    with response:
        message = _no_page(response, _message(response.text)) or response.reason or "no reason given"
    kind = _BY_STATUS.get(response.status_code, errors.APIException)
    raise kind(message, response.status_code, response_error=message)


def _message(body: str) -> str:
    """Return the master's message: `message`, else `error.error`, else the body itself."""
    try:
        content = json.loads(body)
    except ValueError:
        return body.strip()
    if not isinstance(content, dict):
        return body.strip()
    if content.get("message"):
        return str(content["message"])
    error = content.get("error")
    return str(error.get("error") if isinstance(error, dict) else error or content)


def _decoded(response: requests.Response) -> Any:
    try:
        return response.json() if response.content else {}
    except ValueError as error:
        answer = _no_page(response, f"'{response.text[:80]}'")
        raise errors.BadResponseException(
            f"{response.url} did not answer with JSON but {answer}; {_ADVICE}"
        ) from error


def _no_page(response: requests.Response, text: str) -> str:
    """Return the text of an answer, and of a page for a browser only that it is one."""
    if not text.lstrip("'").lstrip().lower().startswith(("<!doctype", "<html")):
        return text
    return f"a web page (status {response.status_code} {response.reason})"


def _record(line: bytes) -> Any:
    content = json.loads(line)
    if "error" in content:
        error = content["error"]
        status = int(error.get("http_code") or 500)
        raise _BY_STATUS.get(status, errors.APIException)(str(error.get("message", "")), status)
    return content["result"]
