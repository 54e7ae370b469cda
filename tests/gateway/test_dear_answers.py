"""An answer that costs much is made in turns: nobody else waits for the answers of a crowd to be made."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter

import pytest

from det_contracts.events import searcher
from services.web.pacing import Pacing
from services.web.pacing_middleware import Client, Pace
from services.web.turns import Turns
from tests.gateway import stories as story

ME = "/api/v1/me"
EXPERIMENTS = 400
DEAR = {
    "log of the cluster": ("/api/v1/master/logs?limit=10000", "services.catalogue.journal", "describe"),
    "events": ("/api/v1/events?limit=1000", "services.why.chain", "describe"),
    "history": ("/api/v1/why/experiment/1?all=true&limit=1000", "services.why.reader", "decode"),
    "timeline": ("/api/v1/experiments/1/timeline", "services.why.reader", "decode"),
    "list": (
        f"/api/v1/experiments?limit={EXPERIMENTS}",
        "services.rest_routes.experiments.experiments",
        "experiment",
    ),
}


@pytest.fixture
def busy(gateway):
    """A log of thousands of events, a third of them about one experiment."""
    for id in range(1, EXPERIMENTS + 1):
        gateway.run(gateway.append(story.created(id), searcher.ExperimentActivated(id, "submitted")))
    for number in range(EXPERIMENTS):
        gateway.run(gateway.append(searcher.ExperimentPaused(1, f"paused {number}")))
        gateway.run(gateway.append(searcher.ExperimentActivated(1, f"activated {number}")))
    gateway.settle()
    return gateway


@pytest.mark.parametrize("kind", DEAR)
def test_a_crowd_that_asks_for_dear_answers_delays_an_answer_to_another_little(busy, monkeypatch, kind):
    path, module, name = DEAR[kind]
    made, real = Counter(), getattr(sys.modules[module], name)

    def counted(*arguments, **more):
        made[name] += 1
        return real(*arguments, **more)

    monkeypatch.setattr(sys.modules[module], name, counted)
    his = {"Authorization": busy.client.headers["Authorization"]}
    hers = {"Authorization": f"Bearer {busy.log_in('admin')}"}

    async def again_and_again():
        while True:
            assert (await busy.client.get(path, headers=his)).status_code == 200

    async def ask():
        crowd = [asyncio.ensure_future(again_and_again()) for _ in range(50)]
        try:
            while made[name] < 4_000:
                await asyncio.sleep(0)
            most = 0
            for _ in range(5):
                before = made[name]
                assert (await busy.client.get(ME, headers=hers)).status_code == 200
                most = max(most, made[name] - before)
            assert not any(client.done() for client in crowd)
            return most
        finally:
            for client in crowd:
                client.cancel()
            await asyncio.wait(crowd)

    assert busy.run(ask()) <= 500


@pytest.mark.parametrize(("size", "turns"), [(100, 1), (50_000, 4), (1 << 30, 65)])
def test_who_got_a_long_answer_takes_more_turns_before_the_next(size, turns):
    async def work():
        pacing, taken = Pacing(1, 0.0), Counter()

        class Counting(Turns):
            async def take(self, user, client=""):
                taken[user, client] += 1

        async def app(scope, receive, send):
            await send({"type": "http.response.start"})
            await send({"type": "http.response.body", "body": Long(size)})

        async def send(message):
            """Nobody reads it."""

        pace = Pace(pacing, Counting(), lambda scope: scope["client"])
        script, person = Client("ann", "script"), Client("ann", "ann")
        for client in (script, person, script, person):
            await pace.run(app if client == script else nothing, {"client": client}, None, send)
        assert (taken[script], taken[person]) == (1 + turns, 2)

    asyncio.run(work())


class Long:
    """Stands for so many bytes."""

    def __init__(self, size):
        self._size = size

    def __len__(self):
        return self._size


async def nothing(scope, receive, send):
    """Answer nothing."""


def test_each_user_follows_the_log_of_the_cluster_so_many_times(busy):
    followers = busy.backend.limits.log_followers
    for _ in range(16):
        busy.run(followers.acquire("determined"))
    path = "/api/v1/master/logs?follow=true"
    refused = busy.send("GET", path)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) > 0
    assert busy.send("GET", path.replace("true", "false")).status_code == 200
    followers.release("determined")

    async def hang_up():
        async with asyncio.timeout(0.5):
            await busy.client.get(path)

    with pytest.raises(TimeoutError):
        busy.run(hang_up())
    assert followers.active == 15
