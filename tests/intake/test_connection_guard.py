"""A script that takes the broker's connections loses what is beyond its share, and others find places."""

import asyncio

import pytest

from services.intake import connection_guard
from services.intake.connection_guard import ConnectionGuard, beyond_share
from services.kit import broker as kit
from services.kit import nats_client
from services.kit.credentials import trial_inbox, worker_inbox
from tests.fixtures.broker import RealBroker

PLACES = 40


@pytest.fixture
def small_broker(tmp_path, monkeypatch):
    monkeypatch.setattr(kit, "_max_connections", lambda: PLACES)
    monkeypatch.setattr(connection_guard, "MIN_EACH", 3)
    # Connections are on several pages.
    monkeypatch.setattr(connection_guard, "PAGE", 7)
    monkeypatch.setattr(connection_guard, "FACTS_S", 0.5)
    server = RealBroker(tmp_path).start()
    yield server
    server.close()


def ids(counts):
    starts = {name: sum(list(counts.values())[:at]) for at, name in enumerate(counts)}
    return {name: list(range(starts[name], starts[name] + count)) for name, count in counts.items()}


@pytest.mark.parametrize(
    ("counts", "places", "left"),
    [
        ({"a": 100}, 200, {"a": 100}),
        ({"a": 300}, 200, {"a": 200}),
        ({"a": 1000, "b": 1}, 200, {"a": 199, "b": 1}),
        ({"a": 1000, "b": 1000, "c": 10}, 200, {"a": 95, "b": 95, "c": 10}),
        # Nobody loses the connections that everybody may have, however many there are.
        ({str(each): 20 for each in range(1000)}, 200, {str(each): 20 for each in range(1000)}),
        ({str(each): 70 for each in range(1000)}, 200, {str(each): 64 for each in range(1000)}),
        ({}, 200, {}),
    ],
)
def test_whoever_has_most_keeps_an_equal_share_of_the_oldest(counts, places, left):
    held = ids(counts)
    ended = beyond_share(held, places)
    assert {name: len(held[name]) - len(ended.get(name, ())) for name in held} == left
    assert all(held[name][-len(newest) :] == newest for name, newest in ended.items())


async def service(broker):
    path = broker.folder / "intake.creds"
    path.write_text(broker.authority.service("intake"))
    return await nats_client.connect(broker.url, user_credentials=str(path), inbox_prefix=b"_INBOX.intake")


async def scripts(broker, trial, number):
    """Connections of a trial that do not come back."""
    options = {"allow_reconnect": False, "inbox_prefix": trial_inbox(trial).encode()}
    credentials = broker.trial_credentials(trial)
    return [await broker.connect(credentials, **options) for _ in range(number)]


async def left(connections, number):
    async with asyncio.timeout(60):
        while sum(not connection.is_closed for connection in connections) > number:
            await asyncio.sleep(0.01)
    return [not connection.is_closed for connection in connections]


@pytest.mark.live
def test_a_script_that_takes_all_connections_loses_those_beyond_its_share(small_broker):
    async def story():
        platform = await service(small_broker)
        guard = ConnectionGuard(platform, lambda: True)
        other = await scripts(small_broker, 13, 2)
        worker = await small_broker.connect(
            small_broker.authority.worker("w1"), inbox_prefix=worker_inbox("w1").encode()
        )
        greedy = await scripts(small_broker, 12, PLACES // 2 - 2)
        assert await guard.look()
        # Of forty places, scripts and workers share ten: one is the worker's, two are of the other trial.
        assert await left(greedy, 7) == [True] * 7 + [False] * (len(greedy) - 7)
        assert not any(connection.is_closed for connection in (*other, worker, platform))
        late = await scripts(small_broker, 14, 1)
        for connection in (*late, *other, worker, *greedy[:7], platform):
            await connection.close()

    asyncio.run(story())


@pytest.mark.live
def test_nobody_is_looked_at_while_there_are_places(small_broker):
    async def story():
        platform = await service(small_broker)
        few = await scripts(small_broker, 12, PLACES // 4)
        assert not await ConnectionGuard(platform, lambda: True).look()
        await platform.flush()
        assert await left(few, len(few)) == [True] * len(few)
        for connection in (*few, platform):
            await connection.close()

    asyncio.run(story())
