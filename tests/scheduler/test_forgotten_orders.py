"""The orders of a forgotten worker leave the stream, and those of no other."""

import asyncio
import time

import msgspec
import pytest

from det_contracts import subjects
from det_contracts.events import worker
from det_contracts.orders import WorkerOrders
from services.kit.log import Draft, Fence, OutcomeUnknown
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.service_subjects import service_inbox
from services.scheduler import forgotten_orders
from services.scheduler.forgotten_orders import ForgottenOrders
from services.scheduler.order_stream import OrderStream
from tests.scheduler.orders_cluster import Cluster


class Stream:
    """ORDERS of a log in memory, from which single messages are taken."""

    def __init__(self, log):
        self.log = log
        self.deleted = []
        self.fails = 0

    async def workers(self):
        prefix = subjects.orders("")
        return sorted({m.subject.removeprefix(prefix) for m in self.log.streams[subjects.ORDERS]})

    async def delete(self, position):
        if self.fails:
            self.fails -= 1
            raise OutcomeUnknown("the broker is away")
        self.deleted.append(position)


def newest(cluster, worker_id):
    positions = [
        m.position for m in cluster.log.streams[subjects.ORDERS] if m.subject == subjects.orders(worker_id)
    ]
    return positions[-1] if positions else None


@pytest.fixture
def play(monkeypatch):
    monkeypatch.setattr(forgotten_orders, "RETRY_S", 0.01)

    def run(story):
        async def work():
            cluster = Cluster()
            cluster.schedulers()
            stream = Stream(cluster.log)

            def start():
                forgotten = ForgottenOrders(cluster.parts[0], stream, cluster.writers[0])
                cluster.begin(forgotten.run())
                return forgotten

            try:
                await story(cluster, stream, start)
            finally:
                await cluster.end()

        asyncio.run(work())

    return run


async def gone(cluster, worker_id):
    """It left, and so long ago that the scheduler forgets it."""
    await cluster.register(worker_id)
    await cluster.orders_when(lambda orders: orders.presence == "here", worker_id)
    await cluster.say(worker.WorkerLeft(worker_id, "s1"))
    await cluster.until(lambda: worker_id not in cluster.runners[0].state.workers)


def test_the_orders_of_a_forgotten_worker_are_removed_and_no_others(play):
    async def story(cluster, stream, start):
        start()
        await cluster.register("stays")
        await cluster.orders_when(lambda _: True, "stays")
        await cluster.register("away")
        await cluster.orders_when(lambda _: True, "away")
        await cluster.say(worker.WorkerLeft("away", "s1"), at=time.time())
        await cluster.orders_when(lambda orders: orders.presence == "left", "away")
        await gone(cluster, "w")
        await cluster.until(lambda: stream.deleted)
        assert stream.deleted == [newest(cluster, "w")]

    play(story)


def test_what_was_left_by_an_earlier_leader_is_found_and_a_failure_is_tried_again(play):
    async def story(cluster, stream, start):
        await gone(cluster, "w")
        stream.fails = 2
        start()
        await cluster.until(lambda: stream.deleted)
        assert stream.deleted == [newest(cluster, "w")]

    play(story)


def test_orders_of_a_replica_that_has_read_further_stay(play):
    async def story(cluster, stream, start):
        await cluster.register("other")
        await cluster.orders_when(lambda _: True, "other")
        ahead = WorkerOrders(worker_id="w", position=10**6, session="s", presence="here", allocations=())
        subject = subjects.orders("w")
        await cluster.log.append_batch(
            [Draft(subject, msgspec.json.encode(ahead), "x")], fence=Fence(subject, 0)
        )
        forgotten = start()
        await gone(cluster, "v")
        await cluster.until(lambda: stream.deleted and not forgotten._candidates)
        assert stream.deleted == [newest(cluster, "v")]

    play(story)


def test_a_worker_that_is_told_to_register_keeps_its_orders(play):
    async def story(cluster, stream, start):
        await cluster.register("other")
        await cluster.orders_when(lambda _: True, "other")
        cluster.writers[0].request_registration("w", "s9")
        await cluster.orders_when(lambda orders: orders.session == "s9")
        forgotten = start()
        await gone(cluster, "v")
        await cluster.until(lambda: stream.deleted and not forgotten._candidates)
        assert stream.deleted == [newest(cluster, "v")]

    play(story)


@pytest.mark.live
def test_the_broker_lists_and_deletes_orders(broker):
    async def work():
        connection, intake = [
            await broker.connect(broker.authority.service(owner), inbox_prefix=service_inbox(owner).encode())
            for owner in ("scheduler", "intake")
        ]
        await ensure_streams(intake.jetstream())
        log, stream = JetStreamLog(connection), OrderStream(connection)
        assert await stream.workers() == []
        positions = {}
        for worker_id in ("a", "b"):
            subject = subjects.orders(worker_id)
            positions[worker_id] = await log.append_batch(
                [Draft(subject, b"{}", worker_id)], fence=Fence(subject, 0)
            )
        assert sorted(await stream.workers()) == ["a", "b"]
        await stream.delete(positions["a"])
        await stream.delete(positions["a"])
        assert await stream.workers() == ["b"]
        assert await log.last(subjects.orders("a")) is None
        for client in (connection, intake):
            await client.close()

    asyncio.run(work())
