"""A read of the log that is given up at any moment leaves no consumer with the broker."""

import asyncio
import json

import pytest

from det_contracts import subjects
from services.kit.cancellation import cancel_in_background
from services.kit.jetstream_feed import JetStreamFeed
from services.kit.log_jetstream import JetStreamLog, ensure_streams

pytestmark = [pytest.mark.live, pytest.mark.timeout(200)]


async def consumers(connection):
    answer = await connection.request(f"$JS.API.CONSUMER.NAMES.{subjects.CONTROL}", b"", timeout=60)
    return json.loads(answer.data)["consumers"]


def give_up_after(connection, call, reading):
    """Cancel the task that reads as soon as a request for `call` is on its way."""
    request = connection.request

    async def cut_off(subject, *arguments, **options):
        if call in subject:
            asyncio.get_running_loop().call_soon(reading[0].cancel)
        return await request(subject, *arguments, **options)

    connection.request = cut_off


@pytest.mark.parametrize("call", ["STREAM.INFO", "CONSUMER.CREATE"])
def test_none_is_left_by_who_gives_up_while_it_is_made(broker, call):
    errors = []

    async def work():
        watching = await broker.connect()
        await ensure_streams(watching.jetstream())
        connection = await broker.connect(errors=errors)
        reading = []
        give_up_after(connection, call, reading)
        feed = JetStreamFeed(connection, subjects.CONTROL, 0, [])

        async def read():
            try:
                await feed.open()
            finally:
                await feed.close()

        reading.append(asyncio.create_task(read()))
        with pytest.raises(asyncio.CancelledError):
            await reading[0]
        await connection.flush()
        async with asyncio.timeout(60):
            while await consumers(watching):
                await asyncio.sleep(0.02)
        await connection.close()
        await watching.close()

    asyncio.run(work())
    assert errors == []


def listening(connection):
    """Subjects that the connection subscribes to."""
    return {subscription.subject for subscription in connection._subs.values()}


@pytest.mark.parametrize("again_after", [None, 0, 1, 2, 3])
def test_a_reader_that_is_cancelled_leaves_no_subscription(broker, again_after):
    """It would receive every message from then on, and keep them: a gateway grew by 2 MB with each page."""

    async def work():
        connection = await broker.connect()
        await ensure_streams(connection.jetstream())
        log = JetStreamLog(connection)
        before = listening(connection)
        reading = asyncio.Event()

        async def read():
            async with log.read(subjects.REPORTS, after=0) as feed:
                reading.set()
                while True:
                    await feed.batch()

        task = asyncio.create_task(read())
        await reading.wait()
        assert listening(connection) - before
        cancel_in_background(task)
        if again_after is not None:
            for _ in range(again_after):
                await asyncio.sleep(0)
            # As when a page is closed while the process ends.
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(60):
            while listening(connection) - before:
                await asyncio.sleep(0.01)
        await connection.close()

    asyncio.run(work())
