"""Bytes that are no HTTP, or nearly: a gateway that listens meets none with a failure of its own."""

from __future__ import annotations

import contextlib
import random
import socket

import pytest

from tests.gateway.running import Running

pytestmark = pytest.mark.live
GET = b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\n"
REQUESTS = {
    "nothing": b"",
    "ends of lines": b"\r\n" * 1000,
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/0.9": b"GET /info\r\n",
    "another version": b"GET /info HTTP/9.9\r\n\r\n",
    "no host": b"GET /info HTTP/1.1\r\n\r\n",
    "two hosts": GET + b"Host: localhost\r\n\r\n",
    "a long address": b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a long query": b"GET /info?" + b"a=b&" * 12_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a long header": GET + b"X: " + b"a" * 2_000_000 + b"\r\n\r\n",
    "a long name": GET + b"a" * 100_000 + b": x\r\n\r\n",
    "many headers": GET + b"".join(b"X-%d: a\r\n" % n for n in range(4_000)) + b"\r\n",
    "a long token": GET + b"Authorization: Bearer " + b"a.b" * 15_000 + b"\r\n\r\n",
    "a token of bytes": GET + b"Authorization: Bearer \xff\xfe\x80\r\n\r\n",
    "many cookies": GET + b"Cookie: " + b"auth=x; " * 7_000 + b"\r\n\r\n",
    "odd cookies": GET + b'Cookie: auth="\\777; =; ;;; \xff=\xfe\r\n\r\n',
    "folded": GET + b"X: a\r\n b\r\n\tc\r\n\r\n",
    "null in a header": GET + b"X: a\0b\r\n\r\n",
    "no colon": GET + b"nothing\r\n\r\n",
    "a space before the colon": GET + b"X : a\r\n\r\n",
    "an address elsewhere": b"GET http://evil.test/info HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a path of bytes": b"GET /api/v1/experiments/\xff%ff%c0%ae HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a path that climbs": b"GET /det/..%2f..%2f..%2fetc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a star": b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a tunnel": b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n",
    "an odd method": b"BREW /info HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a web socket": GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    "HTTP/2 in clear": GET
    + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n\r\n",
    "a negative length": POST + b"Content-Length: -1\r\n\r\n{}",
    "a huge length": POST + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
    "a length in words": POST + b"Content-Length: two\r\n\r\n{}",
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
    "length and chunks": POST
    + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "another coding": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "chunks of no size": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "chunks of huge size": POST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}\r\n",
    "an extension without end": POST + b"Transfer-Encoding: chunked\r\n\r\n2;" + b"a" * 200_000 + b"\r\n{}",
    "many small chunks": POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 50_000 + b"0\r\n\r\n",
    "a chunk that is none, while the request is read": POST
    + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n",
    "a chunk that is none, of what nobody reads": b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n",
    "trailers": POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: a\r\n" * 5_000 + b"\r\n",
    "a body that is packed": POST + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\0\0",
    "an expectation": POST + b"Expect: 200-maybe\r\nContent-Length: 2\r\n\r\n{}",
    "one request behind another": (GET + b"\r\n") * 200,
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    running = Running(tmp_path_factory.mktemp("gateway"))
    running.start()
    running.log_in()
    yield running
    running.close()


def sent(gateway, request):
    """What is answered until the connection is closed; its sender says nothing more."""
    received = b""
    wire = socket.create_connection(("127.0.0.1", gateway.port), timeout=60)
    with wire, contextlib.suppress(OSError):
        wire.sendall(request)
        wire.shutdown(socket.SHUT_WR)
        while chunk := wire.recv(1 << 16):
            received += chunk
    return received


def check(gateway):
    """It lives, answers, and has failed at nothing."""
    assert gateway.gateway.poll() is None
    assert gateway.client.get("/api/v1/me").status_code == 200
    log = (gateway.folder / "gateway.log").read_text(errors="replace")
    assert "request.failed" not in log, log[-3000:]
    assert "Traceback" not in log, log[-3000:]


@pytest.mark.parametrize("name", REQUESTS)
def test_no_request_is_a_failure(gateway, name):
    answer = sent(gateway, REQUESTS[name])
    assert not any(b"HTTP/1.1 50%d" % n in answer for n in (0, 2, 4)), answer[:300]
    check(gateway)


def test_nothing_behind_a_request_that_ends_in_two_places_is_a_request(gateway):
    """A proxy that heeds the other header would take the second request for a part of the first."""
    hidden = b"0\r\n\r\nGET /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = POST + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % len(hidden)
    answer = sent(gateway, head + hidden)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"not both" in answer
    check(gateway)


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.full)])
def test_bytes_that_are_changed_at_random(gateway, count):
    chance = random.Random(count)
    originals = [original for original in REQUESTS.values() if 0 < len(original) < 4_000]
    answered = 0
    for _ in range(count):
        request = bytearray(chance.choice(originals))
        for _ in range(chance.randrange(1, 8)):
            at = chance.randrange(len(request))
            new = bytes(chance.choices((*range(256), 10, 13, 32, 58), k=chance.randrange(4)))
            request[at : at + chance.randrange(4)] = new or b"x"
        answered += bool(sent(gateway, bytes(request)))
    # The others were cut off in the midst of what they said.
    assert answered > count / 4
    check(gateway)
