"""A read of the log that is given up at any moment leaves no consumer with the broker."""

import asyncio
import json

import pytest

from det_contracts import subjects
from services.kit.jetstream_feed import JetStreamFeed
from services.kit.log_jetstream import ensure_streams

pytestmark = [pytest.mark.live, pytest.mark.timeout(60)]


async def consumers(connection):
    answer = await connection.request(f"$JS.API.CONSUMER.NAMES.{subjects.CONTROL}", b"", timeout=5)
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
