"""A gateway that answers what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.fixtures.http_server import stop


class Call(NamedTuple):
    """One request as it came in."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Status(NamedTuple):
    """An answer with an error status."""

    code: int
    body: Any = ""
    headers: Mapping[str, str] | None = None


class Lines(NamedTuple):
    """A streamed answer: one JSON object per line; `cut` drops the connection instead of ending it."""

    objects: Iterable[Any]
    cut: bool = False


class Raw(NamedTuple):
    """Bytes as they are; `cut` closes the connection after them although more was promised."""

    data: bytes
    cut: bool = False


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Who asked may have given up by now.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class FakeGateway:
    """Serves on loopback until closed.

    `answer(method, path, *answers)` sets what comes one request after another, the last one for ever.
    An answer is a JSON value, a `Status`, `Lines`, `Raw`, or a function of the `Call` that returns one of
    these.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._answers: dict[tuple[str, str], list[Any]] = {}
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.answer("GET", "/info", {"version": "0.25.0", "cluster_id": "c-1", "master_id": "m-1"})
        self.answer("POST", "/api/v1/auth/login", {"token": "t-1", "user": {"username": "determined"}})
        self.answer("GET", "/api/v1/me", {"user": {"username": "determined"}})

    def answer(self, method: str, path: str, *answers: Any) -> None:
        self._answers[method, path] = list(answers)

    def calls_to(self, method: str, path: str) -> list[Call]:
        return [call for call in self.calls if (call.method, call.path) == (method, path)]

    def wrap_socket(self, context: Any) -> None:
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = self.url.replace("http:", "https:")

    def close(self) -> None:
        stop(self._server)
        self._thread.join()

    def take(self, call: Call) -> Any:
        with self._lock:
            self.calls.append(call)
            answers = self._answers.get((call.method, call.path))
            if not answers:
                return Status(
                    404, {"error": {"code": 5, "reason": "NotFound", "error": f"{call.path} not found"}}
                )
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return answer(call) if callable(answer) else answer


def _handler(gateway: FakeGateway) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            call = Call(self.command, parts.path, parse_qs(parts.query), dict(self.headers), body)
            answer = gateway.take(call)
            if isinstance(answer, Lines):
                self._stream(answer)
            elif isinstance(answer, Raw):
                self._send_bytes(200, answer.data, promised=len(answer.data) + answer.cut)
                self.close_connection = answer.cut
            elif isinstance(answer, Status):
                self._send(answer.code, answer.body, answer.headers)
            else:
                self._send(200, answer)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

        def _send(self, code: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self._send_bytes(code, data, promised=len(data), headers=headers)

        def _send_bytes(
            self, code: int, data: bytes, promised: int, headers: Mapping[str, str] | None = None
        ) -> None:
            self.send_response(code)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(promised))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, answer: Lines) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for item in answer.objects:
                data = json.dumps(item).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            if answer.cut:
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
