"""Streams as an earlier version made them become today's, with all that they hold where it was."""

import asyncio

import pytest

from det_contracts import subjects
from services.kit.jetstream_api import request, request_with_retry
from services.kit.lease import Lease
from services.kit.log import Draft
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.local import remake as module
from services.local.remake import CannotRemake, remake

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
LAZY = ("REPORTS", "LOGS")


async def old_streams(connection):
    """As they were made before: compressed, and flushed lazily."""
    js = connection.jetstream()
    await ensure_streams(js)
    for stream in LAZY:
        lazy = await config(connection, stream) | {"compression": "s2", "persist_mode": "async"}
        await js.delete_stream(stream)
        answer = await request(connection, f"STREAM.CREATE.{stream}", lazy)
        assert answer["config"]["persist_mode"] == "async"


async def write(log, count, first=1):
    for n in range(first, first + count):
        await log.append(Draft(subjects.reports(n % 3 + 1), b"%d" % n, f"report-{n}"))


async def read(log, count, after=0):
    messages = []
    async with asyncio.timeout(60):
        async with log.read(subjects.REPORTS, after=after) as feed:
            while len(messages) < count:
                messages += (await feed.batch()).messages
    return [(m.position, m.subject, m.body) for m in messages]


async def config(connection, stream):
    return (await request_with_retry(connection, f"STREAM.INFO.{stream}", {}))["config"]


def test_old_streams_work_as_they_are(broker):
    async def work():
        connection = await broker.connect()
        await old_streams(connection)
        log = JetStreamLog(connection)
        await write(log, 5)
        await ensure_streams(connection.jetstream())
        for stream in LAZY:
            stream_config = await config(connection, stream)
            assert (stream_config["compression"], stream_config["persist_mode"]) == ("none", "async")
        await write(log, 5, first=6)
        assert len(await read(log, 10)) == 10
        await connection.close()

    asyncio.run(work())


def test_they_get_replicas_only_when_they_are_made_anew(three_brokers, monkeypatch):
    monkeypatch.setattr("services.kit.log_jetstream.REFUSAL_PATIENCE_S", 0.0)

    async def work():
        connection = await three_brokers.connect()
        await old_streams(connection)
        log = JetStreamLog(connection)
        await write(log, 20)
        before = await read(log, 20)
        with pytest.raises(RuntimeError, match=r"python -m services\.local\.remake"):
            await ensure_streams(connection.jetstream(), replicas=3)
        await remake(connection, replicas=3)
        assert await read(JetStreamLog(connection, log.marks), 20) == before
        for stream in subjects.STREAM_SUBJECTS:
            assert (await config(connection, stream))["num_replicas"] == 3
        await connection.close()

    asyncio.run(work())


@pytest.mark.parametrize("interrupted", range(6))
def test_they_are_made_anew_though_it_is_interrupted_anywhere(broker, interrupted, monkeypatch):
    async def work():
        connection = await broker.connect()
        await old_streams(connection)
        log = JetStreamLog(connection)
        await write(log, 50)
        before = await read(log, 50)
        marks = dict(log.marks)
        calls = []

        class Interrupted(Exception):
            pass

        call = module._call

        async def cut(*arguments):
            if len(calls) == interrupted:
                monkeypatch.setattr(module, "_call", call)
                raise Interrupted
            calls.append(arguments)
            await call(*arguments)

        monkeypatch.setattr(module, "_call", cut)
        with pytest.raises(Interrupted):
            await remake(connection)
        await remake(connection)
        for stream in LAZY:
            stream_config = await config(connection, stream)
            assert stream_config["compression"] == "none"
            assert "persist_mode" not in stream_config
            assert stream_config["subjects"] == [subjects.STREAM_SUBJECTS[stream]]
            assert stream_config["max_age"] > 0
        again = JetStreamLog(connection, marks)
        await write(again, 1, first=51)
        assert (await read(again, 51))[:50] == before
        assert [place for place, _, _ in await read(again, 1, after=50)] == [51]
        names = {info.config.name for info in await connection.jetstream().streams_info()}
        assert names == set(subjects.STREAM_SUBJECTS)
        await connection.close()

    asyncio.run(work())


def test_they_are_made_anew_though_no_change_is_answered(broker, monkeypatch):
    """As when who leads a stream dies after it did what was asked."""

    async def work():
        connection = await broker.connect()
        await old_streams(connection)
        log = JetStreamLog(connection)
        await write(log, 5)
        before = await read(log, 5)

        async def unanswered(*arguments):
            await request(*arguments)
            raise TimeoutError

        monkeypatch.setattr(module, "request", unanswered)
        await remake(connection)
        assert await read(JetStreamLog(connection, log.marks), 5) == before
        for stream in LAZY:
            assert "persist_mode" not in await config(connection, stream)
        await connection.close()

    asyncio.run(work())


def test_an_emptied_stream_keeps_its_sequence_numbers(broker):
    async def work():
        connection = await broker.connect()
        await old_streams(connection)
        log = JetStreamLog(connection)
        await write(log, 5)
        await connection.jetstream().purge_stream(subjects.REPORTS)
        await remake(connection)
        await write(log, 1, first=6)
        assert [place for place, _, _ in await read(JetStreamLog(connection), 1, after=5)] == [6]
        await connection.close()

    asyncio.run(work())


def test_it_is_refused_while_services_run(broker):
    async def work():
        connection = await broker.connect()
        await old_streams(connection)
        lease = Lease(connection, "searcher", "a")
        holding = asyncio.create_task(lease.hold())
        async with asyncio.timeout(60):
            while not lease.active:
                await asyncio.sleep(0.02)
        with pytest.raises(CannotRemake, match="stop searcher"):
            await remake(connection)
        assert (await config(connection, "REPORTS"))["persist_mode"] == "async"
        holding.cancel()
        await asyncio.wait([holding])
        await connection.close()

    asyncio.run(work())
