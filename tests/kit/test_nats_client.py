"""The client of the broker: a cancelled request ends whoever made it, and nothing too large is sent."""

import asyncio
import contextlib

import pytest
from nats.aio.client import Client
from nats.errors import MaxPayloadError

from services.kit.nats_client import TolerantClient, framed_bytes


def test_a_cancellation_that_arrives_with_the_answer_is_raised(monkeypatch):
    """In Python 3.11 `asyncio.wait_for`, of which requests are made, swallows it."""

    async def swallowing(*_, **__):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "an answer"

    monkeypatch.setattr(Client, "request", swallowing)

    async def for_ever(connection):
        while True:
            await connection.request("somebody", b"")

    async def work():
        task = asyncio.create_task(for_ever(TolerantClient()))
        await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=60)
        task.cancel()
        assert done
        assert task.cancelled()

    asyncio.run(work())


def test_an_answer_within_a_limit_of_time_is_had(monkeypatch):
    async def answering(*_, **__):
        return "an answer"

    monkeypatch.setattr(Client, "request", answering)

    async def work():
        async with asyncio.timeout(60):
            assert await TolerantClient().request("somebody", b"") == "an answer"

    asyncio.run(work())


def test_who_has_been_cancelled_may_ask_while_it_lets_go_of_what_it_holds(monkeypatch):
    async def answering(*_, **__):
        await asyncio.sleep(0)
        return "an answer"

    monkeypatch.setattr(Client, "request", answering)
    given_back = []

    async def holding():
        try:
            await asyncio.Event().wait()
        finally:
            given_back.append(await TolerantClient().request("somebody", b""))

    async def work():
        task = asyncio.create_task(holding())
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(work())
    assert given_back == ["an answer"]


HEADERS = {"Nats-Msg-Id": "log-1.a.1-w1-täsk-0", "traceparent": "00-1-2-01"}


def test_headers_are_counted_as_the_library_writes_them(monkeypatch):
    written = []

    async def write(client, command):
        written.append(command)

    monkeypatch.setattr(Client, "_send_command", write)
    client = TolerantClient()
    client._flush_queue = None
    asyncio.run(client._send_publish("a", "", b"body", 4, HEADERS))
    header_bytes, total = map(int, written[0].split(b"\r\n")[0].split()[-2:])
    assert (framed_bytes(HEADERS), framed_bytes(HEADERS) + 4) == (header_bytes, total)


def test_what_is_too_large_with_its_headers_is_not_sent(monkeypatch):
    """The broker would close the connection, and the library compares the body alone."""
    sent = []

    async def publish(client, subject, payload, reply, headers):
        sent.append(len(payload))

    monkeypatch.setattr(Client, "publish", publish)
    client = TolerantClient()
    fits = client.max_payload - framed_bytes(HEADERS)

    async def work():
        await client.publish("a", b"x" * fits, headers=HEADERS)
        with pytest.raises(MaxPayloadError):
            await client.publish("a", b"x" * (fits + 1), headers=HEADERS)

    asyncio.run(work())
    assert sent == [fits]
