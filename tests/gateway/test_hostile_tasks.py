"""What tasks answer and what they are asked, made to break: nothing of it is a failure of the gateway's."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from det_contracts.events import gateway as facts
from services.gateway.http.server import listening_socket, serve
from services.web.connection import Connections
from tests.gateway import stories as story

OK = b"HTTP/1.1 200 OK\r\n"
OK_ANSWER = OK + b"Content-Length: 2\r\n\r\nok"
AGREED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
ANSWERS = {
    "a name of a file in UTF-8": OK
    + 'Content-Disposition: attachment; filename="数据.csv"\r\nContent-Length: 2\r\n\r\nok'.encode(),
    "a name of a file in Latin-1": OK
    + 'Content-Disposition: attachment; filename="café.csv"\r\nContent-Length: 2\r\n\r\nok'.encode("latin-1"),
    "bytes of no text": OK + b"X: \xff\xfe\x80\r\nContent-Length: 2\r\n\r\nok",
    "a place in UTF-8": "HTTP/1.1 302 Found\r\nLocation: /数据\r\nContent-Length: 0\r\n\r\n".encode(),
    "less than was said": OK + b"Content-Length: 200\r\n\r\nok",
    "a page, less than was said": OK + b"Content-Type: text/html\r\nContent-Length: 200\r\n\r\n<head>",
    "more than was said": OK + b"Content-Length: 2\r\n\r\nok and more",
    "chunks that end early": OK + b"Transfer-Encoding: chunked\r\n\r\nff\r\nok",
    "chunks that are none": OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n",
    "until it closes": OK + b"\r\nok",
    "a body where none may be": b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok",
    "a body of what is unchanged": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok",
    "a status of its own": b"HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nok",
    "a status below all": b"HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\nok",
    "a reason of bytes": b"HTTP/1.1 200 \xff\xfe\r\nContent-Length: 2\r\n\r\nok",
    "hints without end": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 50_000,
    "an agreement that nobody asked for": AGREED + b"\r\n",
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "nothing": b"",
    "half a head": OK + b"Content-Le",
    "a head without end": OK + b"X: " + b"x" * 1_000_000,
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok",
    "a coding of its own": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "packed, but not really": OK
    + b"Content-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok",
    "a null in a header": OK + b"X: a\0b\r\nContent-Length: 2\r\n\r\nok",
    "an empty header": OK + b"X:\r\nContent-Length: 2\r\n\r\nok",
    "a folded header": OK + b"X: a\r\n b\r\nContent-Length: 2\r\n\r\nok",
    "headers of one hop by odd names": OK
    + b"Connection: close, content-length, \xff\r\nContent-Length: 2\r\n\r\nok",
    "many headers": OK + b"".join(b"X-%d: a\r\n" % n for n in range(1_500)) + b"Content-Length: 2\r\n\r\nok",
}
AGREEMENTS = {
    "a protocol of bytes": AGREED + b"Sec-WebSocket-Protocol: \xe9\r\n\r\n",
    "a protocol in UTF-8": AGREED + "Sec-WebSocket-Protocol: 数据\r\n\r\n".encode(),
    "agreed, and gone": AGREED + b"\r\n",
    "a frame of all there could be": AGREED + b"\r\n\x82\x7f" + b"\x7f" + b"\xff" * 7 + b"x" * 100_000,
}
REQUESTS = {
    "a header in UTF-8": "X: 数据\r\n\r\n".encode(),
    "a header in Latin-1": "X: café\r\n\r\n".encode("latin-1"),
    "bytes of no text": b"X: \xff\xfe\x80\r\n\r\n",
    "a folded header": b"X: a\r\n b\r\n\r\n",
    "an empty header": b"X:\r\n\r\n",
    "an expectation": b"Expect: 100-continue\r\n\r\n",
    "a range": b"Range: bytes=0-\r\nIf-Range: x\r\n\r\n",
    "many headers": b"".join(b"X-%d: a\r\n" % n for n in range(3_000)) + b"\r\n",
    "a length without a body": b"Content-Length: 20\r\n\r\nok",
    "chunks that end early": b"Transfer-Encoding: chunked\r\n\r\nff\r\nok",
    "a protocol of bytes": UPGRADE + b"Sec-WebSocket-Protocol: \xe9\r\n\r\n",
    "a key of bytes": UPGRADE + b"Sec-WebSocket-Key: \xff\r\n\r\n",
    "an upgrade in a hurry": UPGRADE + b"\r\n\x82\x7f\x7f" + b"\xff" * 7 + b"x" * 100_000,
}
PATHS = {
    "bytes": b"\xff\xfe",
    "escapes": b"%ff%00%0d%0a%2e%2e",
    "climbing": b"../../api/v1/me",
    "marks": b'a[b]{c}|d^e`f"g<h>',
    "backslashes": b"a\\..\\b",
    "long": b"a" * 40_000,
    "a query of bytes": b"?a=\xff&b=%ff&\xc3\xa9",
    "many marks": b"a?b?c#d;e",
    "a ticket of bytes": b"~\xff/x",
    "a ticket": b"~%ff%00/x",
}


class Front:
    """A gateway with real connections, and a task behind it that answers bytes."""

    def __init__(self, gateway):
        self.gateway, self.answer = gateway, OK_ANSWER
        gateway.apply(story.worker_here(slots=4))
        gateway.apply(story.created(1), story.trial_created(1))
        board = gateway.post("/api/v1/tensorboards", {"config": {}, "experimentIds": [1]})["tensorboard"]
        self.id, self.allocation = board["id"], f"{board['id']}.1"
        gateway.apply(story.placed(self.allocation, "TENSORBOARD"))
        self.token = gateway.client.headers["Authorization"].encode()

    async def open(self):
        self._task = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        where = f"127.0.0.1:{self._task.sockets[0].getsockname()[1]}"
        await self.gateway.append(facts.Served(self.allocation, where, "the task said so", account="ann"))
        listener = listening_socket("127.0.0.1", 0)
        listener.listen()
        self.port = listener.getsockname()[1]
        self._serving = asyncio.ensure_future(serve(self.gateway.app, listener, Connections(100, 100)))

    async def close(self):
        self._serving.cancel()
        await asyncio.wait([self._serving])
        self._task.close()

    async def _serve(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self.answer)
            await writer.drain()
        writer.close()

    def request(self, headers=b"\r\n", path=b""):
        """All that is answered to a request for the task, until its connection is closed."""
        return self.gateway.run(self._request(headers, path))

    async def _request(self, headers, path):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        first = b"GET /proxy/" + self.id.encode() + b"/" + path + b" HTTP/1.1\r\nHost: localhost\r\n"
        first += b"Authorization: " + self.token + b"\r\n"
        if UPGRADE not in headers:
            first += b"Connection: close\r\n"
        writer.write(first + headers)
        received = b""
        with contextlib.suppress(ConnectionError):
            if not headers.endswith(b"\r\n"):
                writer.write_eof()
            while chunk := await reader.read(1 << 16):
                if not received and UPGRADE in headers:
                    # Of what would go on nothing more comes.
                    writer.write_eof()
                received += chunk
        writer.close()
        return received


@pytest.fixture
def front(gateway, monkeypatch):
    monkeypatch.setattr("services.catalogue.gathers.TASK_PORTS", range(1024, 2**16))
    gateway_front = Front(gateway)
    gateway.run(gateway_front.open())
    gateway.settle()
    yield gateway_front
    gateway.run(gateway_front.close())


class Tried:
    """What was tried, and what failed of it."""

    def __init__(self, front, capfd, caplog):
        self._front, self._capfd, self._caplog = front, capfd, caplog
        self.failures = []

    def send(self, name, headers=b"\r\n", path=b"", answer=OK_ANSWER):
        self._front.answer = answer
        response = self._front.request(headers, path)
        self._front.answer = OK_ANSWER
        if any(response.startswith(b"HTTP/1.1 50%d" % n) for n in (0, 2, 4)):
            self.failures.append((name, response[:300]))
        if not self._front.request().endswith(b"ok"):
            self.failures.append((name, "nobody is answered any more"))
        output = "".join(self._capfd.readouterr()) + self._caplog.text
        self._caplog.clear()
        if any(word in output for word in ("request.failed", "Traceback", "never retrieved")):
            self.failures.append((name, output[-1500:]))
        return response


@pytest.fixture
def tried(front, capfd, caplog):
    return Tried(front, capfd, caplog)


def test_no_answer_of_a_task_is_a_failure(tried):
    for name, answer in ANSWERS.items():
        tried.send(name, answer=answer)
    assert tried.failures == []


def test_no_agreement_of_a_task_is_a_failure(tried):
    for name, answer in AGREEMENTS.items():
        tried.send(name, UPGRADE + b"\r\n", answer=answer)
    assert tried.failures == []


def test_no_request_for_a_task_is_a_failure(tried):
    for name, headers in REQUESTS.items():
        tried.send(name, headers)
    assert tried.failures == []


def test_no_address_of_a_task_is_a_failure(tried):
    for name, path in PATHS.items():
        tried.send(name, path=path)
    assert tried.failures == []
