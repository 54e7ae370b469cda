"""A worker application on a log in memory, with the orders of a scheduler."""

import asyncio

import msgspec

from det_contracts import codec, subjects
from det_contracts.events import Decision
from det_contracts.events.scheduler import AllocationAssigned, Part, WorkerLost
from det_contracts.events.worker import AllocationExited, WorkerRegistered
from det_contracts.orders import Standing, WorkerOrders
from services.kit.log import Draft
from tests.fixtures.intake import admitting
from tests.fixtures.lines import WorkerLog
from worker import app
from worker.identity import Identity
from worker.order_feed import OrderMessage
from worker.orders import ActedOn, Order, Orders
from worker.settings import WorkerSettings

DEADLINE_S = 60


class Silent:
    """A connection that hears signs of life and keeps them to itself."""

    async def publish(self, subject, body):
        pass


class Told:
    """What `worker.order_feed` has of the broker; a scheduler that knows one worker stands behind it.

    It answers each registration, and tells of what the worker said that it runs, but for what is in `over`.
    """

    def __init__(self, host):
        self._host = host
        self._answered = ""
        self._acted_on = 0

    async def next(self):
        while True:
            if (orders := self._host.orders_now()) is not None:
                newest = msgspec.json.encode(orders)
                if newest != self._host.newest:
                    self._host.newest = newest
                    self._host.sequence += 1
            if self._host.sequence > self._acted_on:
                return OrderMessage(self._host.sequence, self._host.newest)
            await asyncio.sleep(0.01)

    async def acted_on(self, heard):
        self._acted_on = heard.sequence

    async def holder(self):
        return self._host.holder

    async def is_newest(self, sequence):
        return sequence == self._host.sequence


class Host:
    """A worker's home and a log; runs are laid out by hand."""

    def __init__(self, folder, slots=2):
        self.log = WorkerLog()
        self.settings = WorkerSettings(
            worker_id="w",
            worker_home=folder / "home",
            worker_slots=slots,
            worker_gpu=False,
            worker_address="10.0.0.1",
            blobs=str(folder / "blobs"),
        )
        self.me = Identity("w", "folder-of-w", "host-of-w")
        self.orders = Orders(self.settings.worker_home)
        self.orders.record(ActedOn(0))
        self.sequence, self.newest = 0, b""
        self.holder = None
        self.over = set()
        """Allocations that are over for the cluster."""
        self.extra_allocations = ()
        """What it is to do beside what it says that it runs."""

    def orders_now(self):
        """As the scheduler would write them; None before the first registration."""
        records = [codec.decode(m.body, m.position) for m in self.log.streams[subjects.CONTROL]]
        registered = next(
            (record for record in reversed(records) if isinstance(record.event, WorkerRegistered)), None
        )
        if registered is None:
            return None
        losses = [record.position for record in records if isinstance(record.event, WorkerLost)]
        events = [record.event for record in records]
        done = {e.allocation_id for e in events if isinstance(e, AllocationExited)} | self.over
        held = [self.orders.get(id) for id in registered.event.running if id not in done]
        standing = [
            Standing(
                allocation_id=order.assigned.allocation_id,
                position=order.position,
                end="out of touch" if losses and order.assigned.fence_s else "",
                lost=bool(losses),
            )
            for order in held
            if order is not None
        ]
        extra = [allocation for allocation in self.extra_allocations if allocation.allocation_id not in done]
        return WorkerOrders(
            worker_id="w",
            position=records[-1].position,
            session=registered.event.session,
            presence="lost" if max(losses, default=0) > registered.position else "here",
            allocations=(*standing, *extra),
        )

    def order(self, allocation, slots, fence_s=0.0, **more):
        parts = (Part("w", slots, 0),)
        assigned = AllocationAssigned(
            allocation_id=allocation,
            task_id="t",
            kind="TRIAL",
            parts=parts,
            trial_id=1,
            experiment_id=1,
            run=1,
            reason="",
            fence_s=fence_s,
        )
        self.orders.save(Order(assigned, started_at=1.0, **more))
        return self.orders.folder(allocation)

    async def work_until(self, done):
        """Let the worker work until the log fulfils a condition; returns the events."""
        worker = app.Worker(self.settings, self.me, Silent())
        run = asyncio.ensure_future(worker.run())
        try:
            async with admitting(self.log), asyncio.timeout(DEADLINE_S):
                while not done(events := await self.events()):
                    assert not run.done(), run.exception()
                    await asyncio.sleep(0.01)
                return events
        finally:
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
            for task in worker._runs.tasks:
                task.cancel()
            await asyncio.gather(*worker._runs.tasks, return_exceptions=True)

    async def events(self):
        async with self.log.read(subjects.CONTROL, after=0) as feed:
            batch = await feed.batch()
        events = [codec.decode(m.body, m.position).event for m in batch.messages]
        return [event for event in events if not isinstance(event, Decision)]

    async def state(self, event):
        body = codec.encode(event, id=type(event).__name__, actor="test", at=1.0)
        await self.log.append(Draft(codec.subject_of(event), body, type(event).__name__))
