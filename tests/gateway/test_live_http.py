"""The live channel over HTTP: two gateways, and a thousand pages at one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from pathlib import Path

import pytest

from services.gateway.http import server
from tests.gateway import stories as story
from tests.gateway.running import Running, eventually

pytestmark = pytest.mark.live
SUBSCRIBERS = 1000
PER_SUBSCRIBER = 150_000
"""Bytes of a gateway's memory, its connection included."""


@pytest.fixture
def running(tmp_path):
    started = Running(tmp_path).start()
    started.log_in()
    yield started
    started.close()


def changes(gateway, topics, last_id=None, after=None):
    """Open the channel at a gateway."""
    headers = {"Last-Event-ID": last_id} if last_id else {}
    params = {"topics": ",".join(topics)} | ({"after": after} if after else {})
    return gateway.client.stream("GET", "/api/v1/live", params=params, headers=headers)


def next_change(lines):
    fields = {}
    for line in lines:
        if line:
            name, _, text = line.partition(": ")
            fields[name] = text
        elif "data" in fields:
            return fields["id"], set(json.loads(fields["data"])["topics"])
        else:
            fields = {}
    raise AssertionError("the stream has ended")


def test_a_page_goes_on_at_another_gateway(running, tmp_path):
    (tmp_path / "second").mkdir()
    second = Running(tmp_path / "second", beside=running)
    try:
        second.start()
        second.client.headers["Authorization"] = running.client.headers["Authorization"]
        topics = ("experiments", "experiment.1", "experiment.2", "cluster")
        with changes(running, topics) as answer:
            lines = answer.iter_lines()
            assert next_change(lines)[1] == set(topics)
            asyncio.run(running.append(story.created(1)))
            last_id, named_topics = next_change(lines)
            assert named_topics == {"experiments", "experiment.1"}
            running.gateway.kill()
        asyncio.run(running.append(story.created(2)))
        eventually(lambda: second.client.get("/api/v1/experiments/2").status_code == 200, "the experiment")
        with changes(second, topics, last_id) as answer:
            assert next_change(answer.iter_lines())[1] == {"experiments", "experiment.2"}
    finally:
        second.close()


def test_a_page_with_new_topics_is_notified_of_earlier_changes(running):
    with changes(running, ["experiments", "cluster"]) as answer:
        first, _ = next_change(answer.iter_lines())
    asyncio.run(running.append(story.created(1)))
    eventually(lambda: running.client.get("/api/v1/experiments/1").status_code == 200, "the experiment")
    topics = ["experiments", "experiment.1", "cluster", "users"]
    with changes(running, topics, after=first) as answer:
        second, named_topics = next_change(answer.iter_lines())
        assert named_topics == {"experiments", "experiment.1"}
    # The browser's own way back names the newer event.
    with changes(running, topics, second, after=first) as answer:
        asyncio.run(running.append(story.created(2)))
        assert next_change(answer.iter_lines())[1] <= {"experiments"}
    refused = running.client.get("/api/v1/live", params={"topics": "users", "after": "soon"})
    assert refused.status_code == 400
    assert "after" in refused.text


def resident(pid):
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def subscribe(running, topics):
    """A connection whose answer has begun, and that is never read again."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port, limit=1024)
    token = running.client.headers["Authorization"]
    head = f"GET /api/v1/live?topics={topics} HTTP/1.1\r\nHost: localhost"
    request = f"{head}\r\nAuthorization: {token}\r\n\r\n"
    writer.write(request.encode())
    await writer.drain()
    assert b" 200 " in await asyncio.wait_for(reader.readline(), 60)
    return writer


@pytest.mark.full
def test_a_thousand_pages_that_do_not_read_take_little(running):
    server.raise_connection_limit()

    def live_readers():
        text = running.client.get("/debug/prom/metrics").text
        sample = next(line for line in text.splitlines() if line.startswith("steadfast_live_readers{"))
        return int(float(sample.rpartition(" ")[2]))

    async def work():
        assert await asyncio.to_thread(live_readers) == 0
        before = resident(running.gateway.pid)
        topics = ",".join(["experiments", "cluster", *(f"experiment.{id}" for id in range(1, 19))])
        writers = []
        for start in range(0, SUBSCRIBERS, 50):
            some = range(start, min(start + 50, SUBSCRIBERS))
            writers += await asyncio.gather(*(subscribe(running, topics) for _ in some))
        assert await asyncio.to_thread(live_readers) == SUBSCRIBERS
        # Each of these is told to all of them, and nobody reads it.
        await running.append(*(story.created(id) for id in range(1, 200)))
        while (await asyncio.to_thread(running.client.get, "/api/v1/experiments/199")).status_code != 200:
            await asyncio.sleep(0.05)
        grown = resident(running.gateway.pid) - before
        for writer in writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        while await asyncio.to_thread(live_readers):
            await asyncio.sleep(0.05)
        return grown

    grown = asyncio.run(work())
    assert grown < SUBSCRIBERS * PER_SUBSCRIBER, f"{grown / SUBSCRIBERS:.0f} bytes for each page"
