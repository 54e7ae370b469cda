"""Clients that ask and do not read: what they cost is bounded, others are served, and in the end they go.

The gateway answers over real connections here, as to anybody; only its patience is shorter than by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest
from websockets.asyncio.server import serve as serve_websockets

from det_contracts.events import gateway as facts
from services.gateway.http.server import listening_socket, serve
from services.web import connection, tunnels
from services.web.connection import Connections
from tests.gateway import stories as story
from tests.gateway.talking import say

pytestmark = pytest.mark.timeout(180)
CLIENTS = 200
MIB = 1 << 20
UNREAD = 8 * MIB


class Asked(asyncio.Protocol):
    """A client that has asked and reads when a test says so."""

    def __init__(self):
        self.took = 0
        self.lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport
        transport.pause_reading()

    def data_received(self, data):
        self.took += len(data)

    def connection_lost(self, error):
        if not self.lost.done():
            self.lost.set_result(None)


class Front:
    """The gateway with real connections."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.connections = Connections(1000, 1000, unread=UNREAD)
        self.token = gateway.client.headers["Authorization"]

    async def __aenter__(self):
        listener = listening_socket("127.0.0.1", 0)
        # The system keeps much by itself otherwise, and grows that with what is sent.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        self.port = listener.getsockname()[1]
        self._serving = asyncio.ensure_future(serve(self.gateway.app, listener, self.connections))
        self._clients = []
        # It listens, and whoever comes waits, before the server takes anybody.
        listener.listen(1000)
        return self

    async def __aexit__(self, *error):
        for client in self._clients:
            client.transport.abort()
        self._serving.cancel()
        await asyncio.wait([self._serving])

    async def ask(self, path, more="", address="127.0.0.1"):
        """Somebody asks, and reads nothing."""
        own = socket.socket()
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        own.setblocking(False)
        own.bind((address, 0))
        loop = asyncio.get_running_loop()
        await loop.sock_connect(own, ("127.0.0.1", self.port))
        _, client = await loop.create_connection(Asked, sock=own)
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {self.token}\r\n{more}\r\n"
        client.transport.write(head.encode())
        self._clients.append(client)
        return client

    async def answered(self, path):
        """Bytes of an answer to somebody who reads it."""
        client = await self.ask(path, "Connection: close\r\n", address="127.0.0.2")
        client.transport.resume_reading()
        await client.lost
        return client.took


def run(gateway, work):
    """As `gateway.run`, with time for hundreds of connections on a machine that has other work."""
    gateway.loop.run_until_complete(asyncio.wait_for(work, 150))


async def until(fact):
    while not fact():
        await asyncio.sleep(0.01)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(connection, "POLL_EVERY_S", 0.05)
    monkeypatch.setattr(connection, "WINDOW_S", 1.0)
    monkeypatch.setattr(tunnels, "STALL_TIMEOUT_S", 0.5)


@pytest.fixture
def large(gateway):
    """An experiment whose configuration is an answer of a MiB."""
    gateway.apply(story.created(1, data={"x": "y" * MIB}))
    return "/api/v1/experiments/1"


def test_who_asks_for_much_and_reads_nothing_is_given_up_before_it_is_too_much(gateway, large):
    async def work():
        async with Front(gateway) as front:
            most = 0
            for _ in range(CLIENTS):
                await front.ask(large)
                most = max(most, front.connections.unread.total)
            await until(lambda: front.connections.cut >= CLIENTS - UNREAD // MIB - 1)
            # Somebody else is served meanwhile, and takes as much as there is.
            assert await front.answered(large) > MIB
            assert most <= UNREAD + 2 * MIB
            assert front.connections.total <= UNREAD // MIB + 2

    run(gateway, work())


def test_who_reads_slowly_is_not_given_up_for_those_who_read_nothing(gateway, large):
    async def work():
        async with Front(gateway) as front:
            slow = await front.ask(large, "Connection: close\r\n")
            for _ in range(60):
                await front.ask(large)
                if not slow.lost.done():
                    slow.transport.resume_reading()
                    before = slow.took
                    await until(lambda before=before: slow.took > before or slow.lost.done())
                    slow.transport.pause_reading()
            slow.transport.resume_reading()
            await slow.lost
            assert slow.took > MIB
            assert front.connections.cut > 0

    run(gateway, work())


def test_a_client_that_is_alone_has_as_much_as_it_asks_for(gateway):
    gateway.apply(story.created(1, data={"x": "y" * (2 * MIB)}))

    async def work():
        async with Front(gateway) as front:
            front.connections.unread._most = MIB
            assert await front.answered("/api/v1/experiments/1") > 2 * MIB

    run(gateway, work())


@pytest.mark.full
@pytest.mark.parametrize("path", ["/api/v1/live?topics=experiments", "/api/v1/trials/1/logs?follow=true"])
def test_streams_that_nobody_reads_hold_up_nobody_and_are_closed(talking, path, impatient):
    """200 of them, and one that reads: of a log that comes fast, and of news."""
    texts = ["x" * 500] * 100

    async def work():
        async with Front(talking) as front:
            for _ in range(CLIENTS):
                await front.ask(path)
            reader = await front.ask(path, address="127.0.0.2")
            reader.transport.resume_reading()
            await until(lambda: front.connections.total == CLIENTS + 1 and reader.took > 0)
            number = 0
            if "logs" in path:
                while front.connections.cut < CLIENTS:
                    number += 1
                    await say(talking, number, *texts)
                    await asyncio.sleep(0.01)
                    assert front.connections.unread.total <= UNREAD + MIB
                await until(lambda: reader.took > number * len(texts) * 500)
            else:
                for number in range(20):
                    await talking.append(story.created(number + 10))
                before = reader.took
                await talking.append(story.created(1000))
                await until(lambda: reader.took > before)
            assert not reader.lost.done()

    run(talking, work())


async def flooding(socket):
    with contextlib.suppress(Exception):
        while True:
            await socket.send(b"x" * 100_000)


@pytest.mark.full
def test_web_sockets_that_nobody_reads_are_closed_and_others_go_on(gateway, monkeypatch, impatient):
    monkeypatch.setattr("services.catalogue.gathers.TASK_PORTS", range(1024, 2**16))
    gateway.apply(story.worker_here(slots=4))
    notebook = gateway.post("/api/v1/notebooks", {"config": {}})["notebook"]
    gateway.apply(story.placed(f"{notebook['id']}.1", "NOTEBOOK"))
    upgrade = (
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    )
    count = 50

    async def work():
        async with serve_websockets(flooding, "127.0.0.1", 0) as task, Front(gateway) as front:
            where = f"127.0.0.1:{task.sockets[0].getsockname()[1]}"
            await gateway.append(
                facts.Served(f"{notebook['id']}.1", where, "the task said so", account="ann")
            )
            path = f"/proxy/{notebook['id']}/x"
            for _ in range(count):
                await front.ask(path, upgrade)
            reader = await front.ask(path, upgrade, address="127.0.0.2")
            reader.transport.resume_reading()
            await until(lambda: reader.took > MIB and front.connections.total == 1)
            before = reader.took
            await until(lambda: reader.took > before + MIB)
            assert not reader.lost.done()

    run(gateway, work())
