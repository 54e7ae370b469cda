"""The broker on a disk that fills: started again there it goes on; how much its streams may take."""

import asyncio
import json
import types

import pytest

from det_contracts import subjects as names
from services.kit import log_jetstream
from services.kit.log_jetstream import ensure_streams
from tests.fixtures.broker import RealBroker

pytestmark = pytest.mark.live
SUBJECT = "control.searcher.experiment.created.1"


async def store(connection, body=b"x"):
    answer = await connection.request(SUBJECT, body, timeout=60)
    return json.loads(answer.data)


async def limits(connection):
    max_bytes = {}
    for stream in ("CONTROL", "REPORTS", "LOGS"):
        answer = await connection.request(f"$JS.API.STREAM.INFO.{stream}", timeout=60)
        max_bytes[stream] = json.loads(answer.data)["config"]["max_bytes"]
    return max_bytes


def test_a_broker_that_is_started_again_with_less_room_than_its_log_takes_goes_on(small_disk):
    disk = small_disk(64)
    broker = RealBroker(disk.path).start()

    async def story():
        connection = await broker.connect()
        await ensure_streams(connection.jetstream(), keep_bytes=8 << 20)
        for _ in range(20):
            await store(connection, b"x" * (1 << 20))
        await connection.close()
        disk.fill(leave=4 << 20)
        broker.kill9()
        connection = await broker.start().connect()
        answer = await store(connection)
        await connection.close()
        return answer

    try:
        answer = asyncio.run(story())
    finally:
        broker.close()
    assert "error" not in answer
    assert answer["seq"] == 21


def test_limits_larger_than_the_disk_keep_no_stream_from_being_made(small_disk):
    broker = RealBroker(small_disk(64).path).start()

    async def story():
        connection = await broker.connect()
        await ensure_streams(connection.jetstream())
        max_bytes = await limits(connection)
        await connection.close()
        return max_bytes

    try:
        assert asyncio.run(story()) == {"CONTROL": -1, "REPORTS": 16 << 30, "LOGS": 16 << 30}
    finally:
        broker.close()


def test_a_smaller_limit_throws_away_only_what_was_asked_for(broker):
    async def story():
        connection = await broker.connect()
        js = connection.jetstream()
        await ensure_streams(js, keep_bytes=1 << 30)
        for number in range(10):
            await connection.request(f"reports.{number}.1", bytes(1000), timeout=60)
        states = []
        for keep, shrink in ((2000, False), (2000, True), (1 << 20, False)):
            await ensure_streams(js, keep_bytes=keep, shrink=shrink)
            answer = await connection.request("$JS.API.STREAM.INFO.REPORTS", timeout=60)
            info = json.loads(answer.data)
            states.append((info["state"]["messages"], info["config"]["max_bytes"]))
        await connection.close()
        return states

    preserved, shrunk, grown = asyncio.run(story())
    assert preserved[0] == 10
    assert 2000 < preserved[1] < 1 << 20
    assert shrunk[0] < 10
    assert shrunk[1] == 2000
    assert grown[1] == 1 << 20


def test_a_stream_that_does_not_answer_is_not_taken_for_an_empty_one(monkeypatch):
    """While a stream has no leader, nobody knows how much it holds; a smaller limit would discard that."""
    no_leader = {"error": {"err_code": 10118, "description": "stream has no leader"}}
    sent = []

    async def answer(nc, subject, request):
        if subject.startswith("STREAM.INFO."):
            sent.append(subject)
            first = len(sent) == 1
            return no_leader if first else {"config": {"max_bytes": 9000}, "state": {"bytes": 5000}}
        sent.append(request["max_bytes"])
        return {}

    monkeypatch.setattr(log_jetstream, "request_with_retry", answer)
    monkeypatch.setattr(log_jetstream, "RETRY_S", 0)
    monkeypatch.setattr(names, "STREAM_SUBJECTS", {"REPORTS": "reports.>"})
    connection = types.SimpleNamespace(_nc=None)
    asyncio.run(ensure_streams(connection, keep_bytes=2000, shrink=False))
    assert sent == ["STREAM.INFO.REPORTS", "STREAM.INFO.REPORTS", 5000]
