"""Slow clients: who does not go on is cut off, who is slow and goes on is not, and nobody has too many."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from services.web import connection
from services.web.connection import Connections, HttpConnection

HEAD = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"


class Clock:
    """A loop whose time a test lets pass."""

    def __init__(self, loop):
        self._loop = loop
        self._now = 1000.0
        self._due = []
        self._order = itertools.count()

    def __getattr__(self, name):
        return getattr(self._loop, name)

    def time(self):
        return self._now

    def call_later(self, delay, work, *arguments):
        entry = [self._now + delay, next(self._order), work, arguments]
        heapq.heappush(self._due, entry)
        return Handle(entry)

    async def passes(self, seconds):
        until = self._now + seconds
        while self._due and self._due[0][0] <= until:
            self._now, _, work, arguments = heapq.heappop(self._due)
            if work is not None:
                work(*arguments)
            await asyncio.sleep(0)
        self._now = until


class Handle:
    def __init__(self, entry):
        self._entry = entry

    def cancel(self):
        self._entry[2] = None


class Wire:
    """A transport whose other end takes what a test lets it take."""

    def __init__(self, address="10.0.0.1"):
        self._address = address
        self.sent = b""
        self.left = 0
        self.takes = True
        self.reads = True
        self.ended = ""
        self._lost = False
        self.protocol = None

    def get_extra_info(self, name, default=None):
        return (self._address, 5) if name == "peername" else default

    def write(self, data):
        self.sent += data
        self.left += 0 if self.takes else len(data)
        if self.left > 1000:
            self.protocol.pause_writing()

    def take(self, count):
        self.left -= count
        if self.ended:
            self._end(self.ended)
        if self.left <= 1000:
            self.protocol.resume_writing()

    def get_write_buffer_size(self):
        return self.left

    def pause_reading(self):
        self.reads = False

    def resume_reading(self):
        self.reads = True

    def is_closing(self):
        return bool(self.ended)

    def close(self):
        self._end("closed")

    def abort(self):
        self.left = 0
        self._end("aborted")

    def _end(self, how):
        self.ended = self.ended if self.ended and how == "closed" else how
        if not self.left and not self._lost:
            self._lost = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)


class Server:
    """Connections without a network to an application that echoes how much it got."""

    def __init__(self, app, most=100, each=100, **limits):
        self.clock = Clock(asyncio.get_running_loop())
        self.connections = Connections(most, each, **limits)
        self._config = Config(app, lifespan="off", log_config=None, access_log=False, ws="none")
        self._config.load()
        self._state = ServerState()

    def connected(self, address="10.0.0.1"):
        wire = Wire(address)
        wire.protocol = HttpConnection(self.connections, self._config, self._state, {}, self.clock)
        wire.protocol.connection_made(wire)
        return wire


async def answer(send, body):
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def counting(scope, receive, send):
    received, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        received, more = received + len(message.get("body", b"")), message.get("more_body", False)
    await answer(send, b"%d" % received)


def played(story, app=counting, **limits):
    async def work():
        server = Server(app, **limits)
        await story(server)
        await settled()
        assert server.connections.total == 0

    asyncio.run(work())


async def settled():
    for _ in range(10):
        await asyncio.sleep(0)


def body_of(wire):
    return wire.sent.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_a_header_that_does_not_come_is_not_waited_for(sent):
    async def story(server):
        wire = server.connected()
        if sent:
            wire.protocol.data_received(sent)
        await server.clock.passes(connection.HEADER_S - 1)
        # A byte now and then is no progress.
        wire.protocol.data_received(b"G" if not sent else b"x")
        assert not wire.ended
        await server.clock.passes(connection.POLL_EVERY_S + 2)
        assert wire.ended == "closed"
        assert b" 408 " in wire.sent
        assert "header" in json.loads(body_of(wire))["error"]["error"]
        assert server.connections.cut == 1

    played(story)


def test_a_second_request_is_waited_for_no_longer_than_the_first():
    async def story(server):
        wire = server.connected()
        wire.protocol.data_received(HEAD % 1 + b"x")
        await settled()
        assert wire.sent.endswith(b"1")
        wire.protocol.data_received(b"POST /x HT")
        await server.clock.passes(connection.HEADER_S - 1)
        assert not wire.ended
        await server.clock.passes(connection.POLL_EVERY_S + 2)
        assert wire.ended

    played(story)


def test_a_body_that_stops_is_not_waited_for():
    async def story(server):
        wire = server.connected()
        wire.protocol.data_received(HEAD % 10_000_000)
        for _ in range(int(connection.WINDOW_S)):
            wire.protocol.data_received(b"x" * 100)
            await server.clock.passes(1)
        await server.clock.passes(connection.POLL_EVERY_S + 1)
        assert wire.ended == "closed"
        assert b" 408 " in wire.sent
        await settled()

    played(story)


def test_a_slow_body_that_goes_on_comes_whole():
    size = 20 * connection.MIN_WINDOW_BYTES

    async def story(server):
        wire = server.connected()
        wire.protocol.data_received(HEAD % size)
        for _ in range(20):
            await server.clock.passes(connection.WINDOW_S - 1)
            wire.protocol.data_received(b"x" * connection.MIN_WINDOW_BYTES)
            await settled()
            assert wire.reads
        assert body_of(wire) == b"%d" % size
        wire.close()

    played(story)


def test_who_waits_for_us_is_not_slow():
    go_on = asyncio.Event()

    async def busy(scope, receive, send):
        await go_on.wait()
        await counting(scope, receive, send)

    async def story(server):
        wire = server.connected()
        wire.protocol.data_received(HEAD % 500_000 + b"x" * 100_000)
        await settled()
        assert not wire.reads
        await server.clock.passes(10 * connection.WINDOW_S)
        assert not wire.ended
        go_on.set()
        await settled()
        assert wire.reads
        wire.protocol.data_received(b"x" * 400_000)
        await settled()
        assert body_of(wire) == b"500000"
        # Nor is whoever waits for an answer that takes long.
        wire.close()

    played(story, app=busy)


def test_an_answer_that_is_not_read_is_given_up_and_one_that_is_read_slowly_is_not():
    async def large(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(10):
            await send({"type": "http.response.body", "body": b"x" * 5000, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def story(server):
        deaf, slow = server.connected(), server.connected()
        for wire in (deaf, slow):
            wire.takes = False
            wire.protocol.data_received(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await settled()
        for _ in range(20):
            await server.clock.passes(connection.WINDOW_S - connection.POLL_EVERY_S)
            slow.take(min(slow.left, 100))
            assert not slow.ended
        assert deaf.ended == "aborted"
        slow.abort()
        await settled()

    played(story, app=large)


def test_too_many_connections_of_one_address_are_rejected_and_others_served():
    async def story(server):
        first = [server.connected() for _ in range(3)]
        other = server.connected("10.0.0.2")
        for wire in (*first, other):
            wire.protocol.data_received(HEAD % 1 + b"x")
        await settled()
        assert [b" 200 " in wire.sent for wire in (*first, other)] == [True, True, False, True]
        refused = first[2]
        assert b" 429 " in refused.sent
        assert b"retry-after" in refused.sent.lower()
        assert b"2 connections from 10.0.0.1" in refused.sent
        assert refused.ended == "closed"
        again = server.connected()
        again.protocol.data_received(HEAD % 1 + b"x")
        await settled()
        assert b" 429 " in again.sent
        first[0].close()
        await settled()
        last = server.connected()
        last.protocol.data_received(HEAD % 1 + b"x")
        await settled()
        assert b" 200 " in last.sent
        for wire in (first[1], other, last):
            wire.close()

    played(story, each=2)


def test_too_many_connections_in_total_are_rejected():
    async def story(server):
        wires = [server.connected(f"10.0.0.{n}") for n in range(3)]
        wires[2].protocol.data_received(HEAD % 1 + b"x")
        await settled()
        assert b" 503 " in wires[2].sent
        for wire in wires:
            wire.close()

    played(story, most=2)
