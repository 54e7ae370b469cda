"""Three brokers: whichever is killed, the log goes on without a gap or a double, and somebody leads."""

import asyncio
import contextlib
import gc

import pytest

from det_contracts import subjects
from services.kit.lease import BUCKET, Lease
from services.kit.log import Draft, Fence, FenceLost, NotStored, OutcomeUnknown
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from worker.order_feed import OrderFeed

# The client library leaves the sockets of broken connections to the garbage collector.
pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]
CONTROL = subjects.CONTROL
LEASES = f"KV_{BUCKET}"


@pytest.fixture(autouse=True)
def collected():
    yield
    gc.collect()


async def eventually(true, within_s=120):
    async with asyncio.timeout(within_s):
        while not await true():
            await asyncio.sleep(0.05)


def draft(n):
    return Draft(f"control.tests.thing.{n}.happened", b"%d" % n, f"id-{n}")


async def replicas(connection, stream):
    """How many copies of a stream there are that are not behind."""
    with contextlib.suppress(Exception):
        info = await connection.jetstream().stream_info(stream)
        return 1 + sum(bool(replica.current) for replica in info.cluster.replicas or ())
    return 0


@contextlib.asynccontextmanager
async def held(*leases):
    tasks = [asyncio.create_task(lease.hold()) for lease in leases]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@pytest.mark.full
def test_the_log_and_the_leases_outlive_each_broker(three_brokers):
    async def work():
        watching = await three_brokers.connect()
        await ensure_streams(watching.jetstream(), replicas=3)
        connections = [await three_brokers.connect() for _ in range(4)]
        candidates = [Lease(c, "searcher", str(n), replicas=3) for n, c in enumerate(connections[:2])]
        writer, reader = map(JetStreamLog, connections[2:])
        written, read = [], []

        async def follow():
            async with reader.read(CONTROL, after=0) as feed:
                while True:
                    read.extend((await feed.batch()).messages)

        async def write(count):
            for n in range(len(written), len(written) + count):
                await writer.append(draft(n))
                written.append(n)
                # What was acknowledged is there for whoever asks.
                assert (await writer.last(draft(n).subject)).body == b"%d" % n

        async def one_leads():
            return sum(candidate.active for candidate in candidates) == 1

        following = asyncio.create_task(follow())
        async with held(*candidates):
            await eventually(one_leads)
            for stream in (LEASES, CONTROL):
                victim = await three_brokers.leader(watching, stream)
                three_brokers.kill9(victim)
                await asyncio.wait_for(write(40), 120)
                await eventually(one_leads)
                three_brokers.start([victim])
                await eventually(lambda stream=stream: whole(watching, stream))
            await write(10)
            async with asyncio.timeout(60):
                while len(read) < len(written) and not following.done():
                    await asyncio.sleep(0.05)
        following.cancel()
        await asyncio.wait([following])
        assert [m.position for m in read] == list(range(1, 91))
        assert [int(m.body) for m in read] == written
        for connection in (watching, *connections):
            await connection.close()

    asyncio.run(work())


async def whole(connection, stream):
    return await replicas(connection, stream) == 3


@pytest.mark.full
def test_a_cluster_goes_from_one_replica_to_three_and_back(three_brokers):
    async def work():
        connection = await three_brokers.connect()
        log = JetStreamLog(connection)
        js = connection.jetstream()
        fence = 0
        for number, count in enumerate((1, 3, 1, 3)):
            await ensure_streams(js, replicas=count)
            # Of services the intake alone changes how many copies there are.
            lease = Lease(connection, subjects.INTAKE, "a", replicas=count)
            async with held(lease):
                await eventually(lambda lease=lease: active(lease))
                for stream in (*subjects.STREAM_SUBJECTS, LEASES):
                    await eventually(lambda s=stream, n=count: has(connection, s, n))
            decision = Draft(subjects.decision("tests"), b"d", f"decision-{number}")
            fence = await decided(log, [decision, draft(number)], fence)
        async with log.read(CONTROL, after=0) as feed:
            messages = []
            while len(messages) < 8:
                messages += (await feed.batch()).messages
        assert [m.position for m in messages] == list(range(1, 9))
        await connection.close()

    asyncio.run(work())


async def decided(log, drafts, last):
    """Append a decision as an owner does, who asks what became of it; returns its position."""
    subject = drafts[0].subject
    while True:
        with contextlib.suppress(OutcomeUnknown, NotStored, FenceLost):
            return await log.append_batch(drafts, fence=Fence(subject, last)) - len(drafts) + 1
        newest = await log.last(subject)
        if newest is not None and newest.position > last:
            return newest.position


async def active(lease):
    return lease.active


async def has(connection, stream, count):
    with contextlib.suppress(Exception):
        info = await connection.jetstream().stream_info(stream)
        return info.config.num_replicas == count and await replicas(connection, stream) == count
    return False


def test_a_worker_that_asks_for_its_newest_orders_breaks_no_copy_of_them(three_brokers):
    """What only the copies find wrong with a message makes them take their own streams for broken."""

    async def work():
        connection = await three_brokers.connect()
        js = connection.jetstream()
        await ensure_streams(js, replicas=3)
        await eventually(lambda: whole(connection, subjects.ORDERS))
        hearing = OrderFeed(connection, "w")
        for number in range(3):
            stored = await js.publish(subjects.orders("w"), b"%d" % number)
            assert await hearing.is_newest(stored.seq)
            assert not await hearing.is_newest(stored.seq + 1)
        await js.publish(subjects.orders("w"), b"last")
        await eventually(lambda: whole(connection, subjects.ORDERS))
        await connection.close()

    asyncio.run(work())
