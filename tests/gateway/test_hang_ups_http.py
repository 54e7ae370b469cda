"""Clients that open streams and hang up at once, while things change, at a gateway with a real broker."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest

from tests.gateway import stories as story
from tests.gateway.running import Running, eventually

pytestmark = pytest.mark.live
CLIENTS, EACH, PORTIONS = 6, 60, 60
STREAMS = (
    "/api/v1/live?topics=experiments",
    "/api/v1/live?topics=experiments,experiment.1,trial.1.series",
    "/api/v1/trials/1/logs?follow=true",
    "/api/v1/experiments/metrics-stream/metric-names?ids=1",
    "/api/v1/allocations/1.r1.1/signals/preemption?timeout_seconds=60",
    "/api/v1/master/logs?follow=true",
)


@pytest.fixture
def running(tmp_path):
    started = Running(tmp_path).start()
    started.log_in()
    yield started
    started.close()


async def restless(running, chance, positions):
    """Open one stream after the other, and hang up after 1 to 60 ms."""
    token = running.client.headers["Authorization"]
    for _ in range(EACH):
        path = chance.choice(STREAMS)
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}"
        head += f"\r\nLast-Event-ID: {chance.choice(positions)}"
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(f"{head}\r\n\r\n".encode())
            await asyncio.sleep(chance.uniform(0.001, 0.06))
            if chance.random() < 0.5:
                # At once, and not with a word of parting.
                writer.transport.abort()
            writer.close()


def metric(running, name, part=""):
    """The sum of a metric's values whose labels hold `part`."""
    text = running.client.get("/debug/prom/metrics").text
    lines = [line for line in text.splitlines() if line.startswith(f"{name}{{") and part in line]
    assert lines
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def test_who_opens_streams_and_hangs_up_freezes_nobody(running):
    before = running.consumers("LOGS")

    async def work():
        await running.append(story.created(1), story.trial_created(1), *story.running(1))
        positions = [1, 2, 5, 50, 5000]
        clients = [
            asyncio.create_task(restless(running, random.Random(n), positions)) for n in range(CLIENTS)
        ]
        for id in range(2, 2 + PORTIONS):
            await running.append(story.created(id))
            await asyncio.sleep(0.02)
        await asyncio.gather(*clients)
        await running.append(story.created(1000))

    asyncio.run(work())
    # What was appended last is there, in records, in lists and for pages.
    eventually(lambda: running.client.get("/api/v1/experiments/1000").status_code == 200, "the last of them")
    listed = running.client.get("/api/v1/experiments").json()["experiments"]
    assert len(listed) == PORTIONS + 2
    with running.client.stream("GET", "/api/v1/live", params={"topics": "experiments"}) as answer:
        lines = answer.iter_lines()
        assert next(lines).startswith("id: ")
        asyncio.run(running.append(story.created(1001)))
        assert any("experiments" in line for line in (next(lines) for _ in range(8)))
    # And nobody is left.
    eventually(lambda: metric(running, "steadfast_live_readers") == 0, "all pages to be closed")
    streams = 'kind="streams and waiting requests"'
    eventually(lambda: metric(running, "steadfast_places_taken", streams) == 0, "all streams to end")
    eventually(lambda: running.consumers("LOGS") == before, "readers of logs to go")
