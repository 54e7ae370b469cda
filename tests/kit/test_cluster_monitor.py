"""What is asked of the broker: by one of many, heard by all, and truly what it is."""

import asyncio

import msgspec
import pytest

from det_contracts import subjects
from services.kit import cluster_monitor
from services.kit.cluster_monitor import (
    EVERY_S,
    LEASES,
    MAX_JITTER_S,
    STREAMS,
    ClusterMonitor,
    ClusterReport,
    collect,
)
from services.kit.lease import Lease
from services.kit.log import Draft
from services.kit.log_jetstream import JetStreamLog, ensure_streams


class Bus:
    """Several processes at a broker whose streams are all well; time passes only by sleeping."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        self.looks = 0
        self.listeners = []
        self.is_connected = True
        sleep = asyncio.sleep

        async def pass_time(seconds):
            self.now += seconds
            await sleep(0)

        monkeypatch.setattr(asyncio, "sleep", pass_time)
        monkeypatch.setattr("services.kit.cluster_monitor.collect", self.take)

    async def take(self, connection):
        self.looks += 1
        return ClusterReport({}, (f"{self.looks}",))

    async def subscribe(self, subject, cb):
        assert subject == subjects.health_look()
        self.listeners.append(cb)
        return self

    async def unsubscribe(self):
        return None

    async def publish(self, subject, body):
        class Message:
            data = body

        for listener in self.listeners:
            await listener(Message)


async def spend(bus, monitors, seconds):
    until = bus.now + seconds
    running = [asyncio.ensure_future(monitor.run()) for monitor in monitors]
    try:
        while bus.now < until:
            await asyncio.sleep(0.01)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def looks(bus, count, **options):
    return [
        ClusterMonitor(bus, clock=lambda: bus.now, chance=lambda n=n: n / count, **options)
        for n in range(count)
    ]


def test_one_asks_and_all_know(monkeypatch):
    async def work():
        bus = Bus(monkeypatch)
        monitors = looks(bus, 7)
        await spend(bus, monitors, 100.0)
        assert bus.looks <= 100.0 / EVERY_S
        assert all(monitor.last == monitors[0].last for monitor in monitors)
        assert monitors[0].last is not None

    asyncio.run(work())


def test_when_the_monitor_that_asks_ends_another_one_asks(monkeypatch):
    async def work():
        bus = Bus(monkeypatch)
        monitors = looks(bus, 7)
        await spend(bus, monitors, 20.0)
        before = bus.looks
        await spend(bus, monitors[1:], 20.0)
        assert bus.looks - before >= 20.0 / (EVERY_S + MAX_JITTER_S) - 2

    asyncio.run(work())


def info(*copies, replicas=3):
    cluster = {"leader": "n1", "replicas": [{"name": f"n{2 + n}"} | copy for n, copy in enumerate(copies)]}
    return {"config": {"num_replicas": replicas}, "state": {"last_seq": 9}, "cluster": cluster}


@pytest.mark.parametrize(
    ("expected", "late"),
    [
        (info({"current": True}, {"current": True}), ()),
        (info(replicas=1), ()),
        (
            info({"current": True}, {"current": False, "lag": 70, "active": 20}),
            ("n3 is 70 operations behind, last heard of 0 s ago",),
        ),
        (
            info({"current": False, "offline": True}, {"current": True}),
            ("n2 is offline",),
        ),
        (info({"current": True}), ("1 more are missing",)),
    ],
)
def test_what_a_streams_leader_says_of_its_copies(expected, late):
    assert cluster_monitor._stream_report(expected) == cluster_monitor.StreamReport(9, late)


def test_a_leader_that_has_lost_the_others_stores_nothing():
    gone = {"current": False, "active": 9_000_000_000, "lag": 5}
    report = cluster_monitor._stream_report(info(gone, gone))
    assert report.problem == "only 1 of its 3 copies are present"
    assert report.replicas[0] == "n2 is 5 operations behind, last heard of 9 s ago"
    assert cluster_monitor._stream_report(info(gone, {"current": True})).problem == ""
    # It counts as current for a while after it has died, and a new leader has never heard of it.
    for gone in ({"current": True, "active": 9_000_000_000}, {"current": False}):
        assert (
            cluster_monitor._stream_report(info(gone, gone)).problem == "only 1 of its 3 copies are present"
        )
    # Slow, but there: it may yet store.
    slow = {"current": False, "active": 500_000_000, "lag": 5}
    assert cluster_monitor._stream_report(info(slow, slow)).problem == ""


def test_while_the_broker_is_away_nobody_asks(monkeypatch):
    async def work():
        bus = Bus(monkeypatch)
        bus.is_connected = False
        await spend(bus, looks(bus, 3), 50.0)
        assert bus.looks == 0

    asyncio.run(work())


@pytest.mark.live
def test_the_brokers_own_answers(broker):
    async def work():
        connection = await broker.connect()
        empty = await collect(connection)
        assert {name: bool(stream.problem) for name, stream in empty.streams.items()} == dict.fromkeys(
            STREAMS, True
        )
        await ensure_streams(connection.jetstream())
        lease = Lease(connection, "searcher", "me")
        holding = asyncio.ensure_future(lease.hold())
        while not lease.active:
            await asyncio.sleep(0.01)
        await JetStreamLog(connection).append(Draft("control.trial.1.x", b"{}", "1"))
        look = await collect(connection)
        assert look.leaders == ("searcher",)
        assert {name: stream.problem for name, stream in look.streams.items()} == dict.fromkeys(STREAMS, "")
        assert {name: stream.replicas for name, stream in look.streams.items()} == dict.fromkeys(STREAMS, ())
        assert look.streams[subjects.CONTROL].last == 1
        assert msgspec.json.decode(msgspec.json.encode(look), type=ClusterReport) == look
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
        # As when its holder hangs: the key is gone, whatever was left of it.
        while (await collect(connection)).leaders:
            await asyncio.sleep(0.05)
        assert (await collect(connection)).streams[LEASES].problem == ""
        await connection.close()

    asyncio.run(work())


@pytest.mark.live
def test_a_stream_that_takes_nothing_is_remembered_until_it_does(broker):
    async def work():
        connection = await broker.connect()
        js = connection.jetstream()
        await ensure_streams(js)
        full = (await js.stream_info("LOGS")).config
        full.max_bytes, full.discard = 10_000, "new"
        await js.update_stream(full)
        log = JetStreamLog(connection)
        appending = asyncio.ensure_future(log.append(Draft("logs.1", b"x" * 20_000, "large")))
        while not log.refusals():
            await asyncio.sleep(0.01)
        assert list(log.refusals()) == ["LOGS"]
        appending.cancel()
        await asyncio.gather(appending, return_exceptions=True)
        await log.append(Draft("control.trial.1.x", b"{}", "1"))
        assert list(log.refusals()) == ["LOGS"]
        await log.append(Draft("logs.1", b"x", "small"))
        assert log.refusals() == {}
        await connection.close()

    asyncio.run(work())
