"""The client of the broker: a request that is cancelled ends whoever made it."""

import asyncio
import contextlib

from nats.aio.client import Client

from services.kit.nats_client import TolerantClient


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
