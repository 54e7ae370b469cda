"""A worker and its host, modelled on `worker/`: disk outlives the process, scripts outlive both."""

import asyncio

import msgspec

from det_contracts import subjects
from det_contracts.events import worker
from det_contracts.orders import NO_ORDERS_YET, WorkerOrders
from services.kit.log import NotConfirmed, TooLarge
from tests.simulation import stopping
from tests.simulation.line import Line
from tests.simulation.violation import Violation
from tests.simulation.worker_runs import STOPPED, Runs
from worker.fact_outbox import draft
from worker.identity import Identity
from worker.last_contact import Contact
from worker.registration import IdTaken, Presence

HEARTBEAT_S = 8.0
RETRY_S = 3.0
REGISTRATION_TIMEOUT_S = 30.0
"""A worker that ended is restarted after this time."""


class Worker(Runs):
    """A host with slots."""

    def __init__(self, world, id, slots, pool="default"):
        self.id = id
        self.slots = slots
        self.pool = pool
        self.up = False
        self.deaf = False
        """Its heartbeats get lost; everything else works."""
        self.retired = False
        """It left and will not come back."""
        self.awake = asyncio.Event()
        """Cleared while its process hangs: its scripts live on, and messages to it wait."""
        self.awake.set()
        self.address = "10.0.0.1"
        self.position = NO_ORDERS_YET
        self.sequence = 0
        """Sequence number of the orders that it last acted on, on disk."""
        self.consumed = 0
        """The broker's position of the worker's consumer."""
        self.contact_at = 0.0
        """In a file: when it was last in touch."""
        self.orders = {}
        self.processes = {}
        self._world = world
        self._sessions = self._folders = 0
        self._tasks = []
        self.process = stopping.Process()
        self._new_folder()
        self._new_line()

    def _new_folder(self):
        self._folders += 1
        self.instance = f"folder-{self._world.new_id()}"
        self._noted_sessions = set()

    def _new_line(self):
        world = self._world
        self.line = Line(world.disk, world.chance, world.plan_now, world.tell, self._on_closed)

    def _on_closed(self, why):
        self._world.fail(Violation("nobody sends what the broker does not take", f"{self.id}: {why}"))

    # -- life

    def start(self):
        if self.up or self.retired:
            return
        self.up = True
        self.process = stopping.Process()
        self._runs = {}
        me = Identity(self.id, self.instance, "host")
        self._presence = Presence(
            me,
            self.pool,
            self.address,
            self,
            self._noted_sessions,
            new_session=self._new_session,
            clock=self._world.clock,
            holder=self._holder,
        )
        self._orders_current = asyncio.Event()
        self._contact = Contact(self._is_current, self._note_contact)
        self._answered = set()
        self._registration_lock = asyncio.Lock()
        self._leaving = False
        self._duties = [self._spawn(self._work())]

    @property
    def settled(self):
        """It has registered, reads orders, and is not leaving."""
        return self.up and self._orders_current.is_set() and not self._leaving

    @property
    def session(self):
        return self._presence.session if self.up else ""

    def _new_session(self):
        self._sessions += 1
        return f"{self.instance}-{self._sessions}"

    def _spawn(self, work):
        task = self.process.run(work)
        task.add_done_callback(self._on_task_done)
        self._tasks.append(task)
        return task

    async def do(self, work):
        """Run work in the process, for as long as it lives."""
        await asyncio.wait([self._spawn(work)])

    def _on_task_done(self, task):
        if not task.cancelled() and task.exception() is not None:
            error = task.exception()
            self._world.fail(
                error if isinstance(error, Violation) else Violation("workers stay up", repr(error))
            )

    def kill(self):
        """The worker process dies; scripts run on."""
        self.up = False
        self.awake.set()
        for task in self._tasks:
            task.cancel()
        self.process.resume()
        self._tasks = []

    end = kill

    def reboot(self):
        """The host goes down, and everything that runs on it."""
        self.kill()
        for process in self.processes.values():
            process.vanish()

    def forget_all(self):
        """A new disk."""
        self.position, self.sequence, self.orders, self.processes = NO_ORDERS_YET, 0, {}, {}
        self.contact_at = 0.0
        self._new_folder()

    async def leave(self):
        """Stopped on purpose."""
        self._leaving = True
        for duty in self._duties:
            duty.cancel()
        session, mine = self.session, self.process
        for run in self._runs.values():
            self._kill(run, run.killed or STOPPED)
        try:
            await asyncio.sleep(2.0)
            left = worker.WorkerLeft(self.id, session)
            if self.up and self.session == session:
                await asyncio.wait_for(self._state(left), 3)
        except TimeoutError:
            pass
        finally:
            if self.up and self.process is mine:
                self.kill()
                for process in self.processes.values():
                    process.kill()

    async def _work(self):
        for order in self.orders.values():
            self._create_run(order)
        # Resume runs only now: what was lost with the machine must be reported as that, not by what is found.
        runs = list(self._runs.values())
        await self._register([run.id for run in runs if not self._is_lost(run)])
        for run in runs:
            self._spawn(self._execute(run))
        self._duties.append(self._spawn(self._send_heartbeats()))
        self._duties.append(self._spawn(self._contact.run_forever()))
        self._duties.append(self._spawn(self._repeat_unanswered_registration()))
        await self._follow_orders()

    async def _is_current(self):
        newest = await self.last(subjects.orders(self.id))
        return (newest.position if newest else 0) == self.sequence

    async def _note_contact(self, at):
        self.contact_at = at

    async def change_slots(self, slots):
        """Some accelerators failed, or came back."""
        self.slots = slots
        async with self._registration_lock:
            if self._leaving:
                return
            await self._register(list(self._runs))
        for run in list(self._runs.values()):
            if self._lacks_slots(run.order):
                self._kill(run, "it lost slots that it ran on")

    async def _register(self, running):
        slots = tuple(worker.Slot(n, "cpu", f"{self.id}-{n}", "cpu") for n in range(self.slots))
        while True:
            try:
                await self._presence.register(slots, running, self.position)
                return
            except IdTaken:
                # It ends, with everything that it ran; its supervisor restarts it.
                self._world.ledger.count("ids taken")
                self._kill_all_runs()
                await asyncio.sleep(RETRY_S)

    async def _holder(self):
        await self.awake.wait()
        return None if self.line.cut else await self._world.holder(self.id)

    async def _state(self, event):
        return await self._send(draft(self.id, event, self._world.clock()))

    async def _send(self, draft):
        while True:
            await self.awake.wait()
            try:
                return await self.line.append(draft)
            except TooLarge:
                raise
            except NotConfirmed:
                continue

    async def append(self, draft):
        """The part of the log interface that `Presence` needs."""
        await self.awake.wait()
        return await self.line.append(draft)

    async def last(self, subject):
        await self.awake.wait()
        return await self.line.last(subject)

    async def _send_heartbeats(self):
        while True:
            await self.awake.wait()
            if not self.line.cut and not self.deaf:
                await self._world.send_heartbeat(self.id, self.session)
            await asyncio.sleep(HEARTBEAT_S)

    async def _repeat_unanswered_registration(self):
        """Retry without an answer: if several want the id at once, one may be passed over."""
        while True:
            session = self.session
            await asyncio.sleep(REGISTRATION_TIMEOUT_S)
            if self.session == session and session not in self._answered:
                await self._register_again()

    async def _follow_orders(self):
        mine = [subjects.orders(self.id)]
        async with self.line.read(subjects.ORDERS, after=self.consumed, subjects=mine) as feed:
            while True:
                batch = await feed.batch()
                await self.awake.wait()
                if batch.messages:
                    await self._handle_orders(batch.messages[-1])

    # -- orders

    async def _handle_orders(self, stored):
        """The newest orders; older ones are not kept."""
        orders = msgspec.json.decode(stored.body, type=WorkerOrders)
        try:
            self._presence.raise_if_refused(orders)
        except IdTaken:
            # It ends, with everything that it ran; its supervisor restarts it.
            self._world.ledger.count("ids taken")
            self._kill_all_runs()
            await asyncio.sleep(RETRY_S)
            await self._register_again()
        answered = self.session in self._answered
        mine, own = orders.session == self.session, self._presence.is_own_session(orders.session)
        if mine:
            self._answered.add(orders.session)
        elif self._orders_current.is_set() and orders.presence == "here" and not own:
            self._kill_all_runs()
            await asyncio.sleep(RETRY_S)
            await self._register_again()
        elif answered:
            await self._register_again()
        if mine and (orders.position >= self.position or self.position == NO_ORDERS_YET):
            await self._act_on(orders)
            self.position, self.sequence = orders.position, stored.position
            self._orders_current.set()
        self.consumed = stored.position

    async def _act_on(self, orders):
        ordered = {standing.allocation_id: standing for standing in orders.allocations}
        for run in list(self._runs.values()):
            if run.id not in ordered and run.order.position <= orders.position:
                self._kill(run, "it is over as far as the cluster knows")
                run.order.over = True
                self._remove_if_over(run)
            elif run.id in ordered and ordered[run.id].end:
                self._kill(run, ordered[run.id].end)
        for standing in orders.allocations:
            if standing.allocation_id not in self.orders and not standing.lost:
                await self._accept_or_decline(standing)
        if orders.presence == "lost":
            await self._register_again()

    async def _register_again(self):
        """Given up for lost but alive: register again, with a new session."""
        async with self._registration_lock:
            await self._register(list(self._runs))
