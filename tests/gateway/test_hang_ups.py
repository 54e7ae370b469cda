"""Clients that hang up at each await of what streams or waits: they leave nothing, and freeze nobody."""

from __future__ import annotations

import asyncio
import itertools

import msgspec
import pytest

from det_contracts import queries
from det_contracts.events import scheduler
from tests.fixtures.tiers import others_in_full
from tests.gateway import stories as story
from tests.gateway.hanging_up import Client, counting
from tests.gateway.talking import say

API = "/api/v1"
ANY_TIME = "timestamp_after=2020-01-01T00:00:00Z&timestamp_before=2030-01-01T00:00:00Z"
ROUTES = {
    "live": ("GET", f"{API}/live?topics=experiments,experiment.1,trial.1.series"),
    "live, come back": ("GET", f"{API}/live?topics=experiments&after=1"),
    "live, ahead": ("GET", f"{API}/live?topics=experiments&after=5000"),
    "log of a trial": ("GET", f"{API}/trials/1/logs?follow=true"),
    "log of a task": ("GET", f"{API}/tasks/1.r1/logs?follow=true&levels=LOG_LEVEL_ERROR"),
    "stored log": ("GET", f"{API}/trials/1/logs?limit=10"),
    "log as a file": ("GET", f"{API}/trials/1/logs/download"),
    "fields of a log": ("GET", f"{API}/trials/1/logs/fields?follow=true"),
    "log of the cluster": ("GET", f"{API}/master/logs?follow=true"),
    "runs": ("GET", f"{API}/resources/allocation/raw?{ANY_TIME}"),
    "table of runs": ("GET", f"/resources/allocation/allocations-csv?{ANY_TIME}"),
    "sums by day": (
        "GET",
        f"{API}/resources/allocation/aggregated?start_date=2023-11-01&end_date=2023-12-31",
    ),
    "names of metrics": ("GET", f"{API}/experiments/metrics-stream/metric-names?ids=1"),
    "batches": ("GET", f"{API}/experiments/1/metrics-stream/batches?metricName=loss"),
    "snapshot": ("GET", f"{API}/experiments/1/metrics-stream/trials-snapshot?metricName=loss"),
    "sample": ("GET", f"{API}/experiments/1/metrics-stream/trials-sample?metricName=loss"),
    "profiler": ("GET", f"{API}/trials/1/profiler/available_series?follow=true"),
    "preemption": ("GET", f"{API}/allocations/1.r1.1/signals/preemption?timeout_seconds=60"),
    "rendezvous": ("GET", f"{API}/allocations/1.r1.1/resources/1.r1.1-0/rendezvous"),
    "events of a search": ("GET", f"{API}/experiments/1/searcher_events"),
}


@pytest.fixture
def busy(talking):
    """A running trial, one of whose two members is not there, and services that have nothing to tell."""
    wanted, placed, started = story.running(1)
    two = (scheduler.Part("w-1", (0,), 0), scheduler.Part("w-2", (0,), 1))
    talking.apply(wanted, msgspec.structs.replace(placed, parts=two), started)
    talking.run(say(talking, 0, "first"))
    talking.peers.values |= {
        queries.LogFields: {
            "places": [], "ranks": [], "stdtypes": [], "sources": [], "levels": {}, "lines": 0,
            "last_number": 0, "first_error": None, "last_line": None, "failing_line": None, "marks": [],
        },
        queries.LogCause: None,
        queries.SearcherEvents: {"state": "ACTIVE", "events": []},
        queries.MetricNames: {},
        queries.ReportedSteps: {"steps": [], "more": False},
        queries.Series: [],
    }  # fmt: skip
    talking.experiments = 1
    return talking


async def something_happens(gateway):
    gateway.experiments += 1
    await gateway.append(story.created(gateway.experiments))
    await gateway.append(story.stored(1, f"c-{gateway.experiments}", gateway.experiments))
    await say(gateway, gateway.experiments, f"line {gateway.experiments}", level="ERROR")


def left(gateway):
    """What clients hold at a gateway."""
    backend = gateway.backend
    return {
        "waiting": len(backend.catalogue.waiters),
        "pages": backend.live._open_pages,
        "curves": backend.live._curves.running,
        "followers": len(backend.followed_logs.tails),
        "readers": len(backend.followed_logs.tails._readers),
        "reads": backend.followed_logs.reads.active + backend.followed_logs.reads.queued,
        "streams": backend.limits.streams.active,
        "grown": len(gateway.journal._append_signal._waiting) - gateway.reading,
    }


async def emptied(gateway, tasks):
    """Wait until clients hold nothing, and no task of theirs runs."""
    async with asyncio.timeout(60):
        while any(left(gateway).values()) or len(asyncio.all_tasks()) > tasks:
            await asyncio.sleep(0.001)


WAYS = ("closes", "cancels", "late")
IN_TURN = [(name, WAYS[number % len(WAYS)]) for number, name in enumerate(ROUTES)]
"""Each route with one of the ways, and each way with several routes."""


@pytest.mark.parametrize(("name", "how"), others_in_full(itertools.product(ROUTES, WAYS), IN_TURN))
def test_who_hangs_up_at_any_await_leaves_nothing_and_freezes_nobody(busy, name, how):
    app, token = busy.app, busy.client.headers["Authorization"]
    busy.send("GET", "/info")

    async def work():
        await asyncio.sleep(0)
        busy.reading = len(busy.journal._append_signal._waiting)
        tasks, at, more = len(asyncio.all_tasks()), 1, True
        while more:
            client = Client(app, *ROUTES[name], token, at, how)
            more = await client.run(lambda: something_happens(busy))
            at += 1
            await emptied(busy, tasks)
            # The others see what happens.
            await busy.append(story.created(busy.experiments + 1))
            busy.experiments += 1
            async with asyncio.timeout(60):
                await busy.catalogue.wait_for_position(len(busy.journal.streams["CONTROL"]))
            answer = await busy.client.get(f"{API}/experiments/{busy.experiments}")
            assert answer.status_code == 200, answer.text
        return at

    busy.loop.set_task_factory(counting)
    try:
        tried = busy.loop.run_until_complete(work())
    finally:
        busy.loop.set_task_factory(None)
    assert tried > 4


MANY = {
    f"{API}/experiments/kill": {"experimentIds": list(range(1, 1001))},
    f"{API}/experiments/move": {"experimentIds": list(range(1, 1001)), "destinationProjectId": 1},
    f"{API}/job-queues": {"updates": [{"jobId": f"experiment-{id}", "priority": 1} for id in range(1, 1001)]},
}


@pytest.mark.parametrize("path", MANY)
def test_what_one_request_asks_for_a_thousand_times_ends_with_its_client(gateway, path):
    received = iter([{"type": "http.request", "body": msgspec.json.encode(MANY[path]), "more_body": False}])

    async def receive():
        if (message := next(received, None)) is not None:
            return message
        if len(gateway.peers.commands) < 3:
            await asyncio.get_running_loop().create_future()
        return {"type": "http.disconnect"}

    async def send(message):
        await asyncio.sleep(0)

    token = gateway.client.headers["Authorization"].encode()
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"host", b"localhost"), (b"authorization", token)],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip
    gateway.run(gateway.app(scope, receive, send))
    assert len(gateway.peers.commands) == 3
