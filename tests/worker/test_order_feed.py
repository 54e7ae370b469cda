"""How a worker hears, with a real broker: the newest orders, until it has acted on them."""

import asyncio

import msgspec
import pytest

from det_contracts import subjects
from det_contracts.orders import WorkerOrders
from services.kit.log import Draft, Fence, FenceLost
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.scheduler import consumers
from worker import order_feed
from worker.order_feed import OrderFeed

pytestmark = [pytest.mark.live, pytest.mark.timeout(200)]


def orders(position, worker_id="w"):
    return WorkerOrders(worker_id=worker_id, position=position, session="s", presence="here", allocations=())


class Told:
    """The scheduler's side."""

    def __init__(self, connection):
        self._log = JetStreamLog(connection)
        self.last = 0

    async def tell(self, worker_orders):
        subject = subjects.orders(worker_orders.worker_id)
        draft = Draft(
            subject, msgspec.json.encode(worker_orders), f"{worker_orders.worker_id}-{worker_orders.position}"
        )
        self.last = await self._log.append_batch([draft], fence=Fence(subject, self.last))
        return self.last


@pytest.fixture
def play(broker):
    def run(story):
        async def work():
            service, mine = (
                await broker.connect(),
                await broker.connect(broker.authority.worker("w"), inbox_prefix=b"_INBOX.w"),
            )
            await ensure_streams(service.jetstream())
            try:
                async with asyncio.timeout(60):
                    await story(service, mine, Told(service))
            finally:
                await mine.close()
                await service.close()

        asyncio.run(work())

    return run


def read(heard):
    return msgspec.json.decode(heard.body, type=WorkerOrders).position


def test_what_was_not_acted_on_comes_again_and_what_was_does_not(play, monkeypatch):
    monkeypatch.setattr(consumers, "ACK_WAIT_S", 1)

    async def story(service, mine, scheduler):
        await consumers.Consumers(service).ensure("w")
        hearing = OrderFeed(mine, "w")
        for position in (1, 2, 3):
            last = await scheduler.tell(orders(position))
        heard = await hearing.next()
        assert (read(heard), heard.sequence) == (3, last)
        again = await hearing.next()
        assert read(again) == 3
        await hearing.acted_on(again)
        await scheduler.tell(orders(4))
        while read(heard) != 4:
            heard = await hearing.next()
        await hearing.acted_on(heard)
        # Nothing is left that the broker would send again.
        async with asyncio.timeout(60):
            while (await service.jetstream().consumer_info(subjects.ORDERS, "w")).num_ack_pending:
                await asyncio.sleep(0.01)

    play(story)


def test_who_asks_before_there_is_a_consumer_hears_as_soon_as_there_is(play):
    async def story(service, mine, scheduler):
        waiting = asyncio.ensure_future(OrderFeed(mine, "w").next())
        await scheduler.tell(orders(1))
        await consumers.Consumers(service).ensure("w")
        assert read(await waiting) == 1

    play(story)


def test_orders_keep_coming_after_as_many_as_one_request_asks_for(play, monkeypatch):
    """The broker does not say that a request is used up: it was noticed after four seconds of silence."""
    monkeypatch.setattr(order_feed, "SILENT_S", 3600.0)
    monkeypatch.setattr(order_feed, "ORDERS_PER_REQUEST", 5)

    async def story(service, mine, scheduler):
        await consumers.Consumers(service).ensure("w")
        hearing = OrderFeed(mine, "w")
        for position in range(1, 24):
            await scheduler.tell(orders(position))
            heard = await hearing.next()
            assert read(heard) == position
            await hearing.acted_on(heard)

    play(story)


def test_creating_a_consumer_again_changes_nothing(play):
    async def story(service, mine, scheduler):
        for _ in range(2):
            await consumers.Consumers(service).ensure("w")
        await scheduler.tell(orders(1))
        hearing = OrderFeed(mine, "w")
        await hearing.acted_on(await hearing.next())
        await consumers.Consumers(service).ensure("w")
        await scheduler.tell(orders(2))
        assert read(await hearing.next()) == 2

    play(story)


def test_the_leader_of_the_stream_says_which_orders_are_the_newest(play):
    async def story(service, mine, scheduler):
        hearing = OrderFeed(mine, "w")
        assert await hearing.is_newest(0)
        assert not await hearing.is_newest(1)
        first = await scheduler.tell(orders(1))
        assert await hearing.is_newest(first)
        assert not await hearing.is_newest(0)
        second = await scheduler.tell(orders(2))
        assert (await hearing.is_newest(first), await hearing.is_newest(second)) == (False, True)
        # Asking stores nothing.
        assert (await JetStreamLog(service).bounds(subjects.ORDERS))[1] == second

    play(story)


def test_one_message_alone_is_fenced_and_needs_no_batch(play):
    async def story(service, mine, scheduler):
        await scheduler.tell(orders(1))
        scheduler.last = 0
        with pytest.raises(FenceLost):
            await scheduler.tell(orders(2))

    play(story)
