"""A worker: tells the cluster what it has, hears what to run, and runs it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import structlog
from nats.aio.client import Client

from det_contracts import codec, subjects
from det_contracts.events.scheduler import AllocationAssigned, AllocationEnded, KillRequested, WorkerLost
from det_contracts.events.worker import AllocationExited, Slot, WorkerRegistered
from services.kit import blobs, logging, process, tracing
from services.kit.cluster_look import ClusterLook
from services.kit.connection import connect, leave, until_closed
from services.kit.disk_space import Disks
from services.kit.health_signs import tell_signs
from services.kit.jetstream_feed import JetStreamFeed
from services.kit.log import Draft, OutcomeUnknown
from services.kit.log_jetstream import JetStreamLog
from services.kit.measures import Measures, Reading
from services.kit.records import read_event
from services.kit.self_watch import Facts, SelfWatch
from services.kit.settings import BadSettings, load
from worker import address, slots, workdir
from worker.account import Accounts, BadAccount
from worker.contact import FILE as CONTACT
from worker.contact import Contact, ContactFile
from worker.identity import CannotBe, Identity, claim
from worker.orders import Order, Orders
from worker.preparing import Preparer
from worker.presence import IdTaken, Presence
from worker.run import STOPPED, Run
from worker.settings import WorkerSettings

if TYPE_CHECKING:
    from services.kit.spans import Tracer

LEAVE_S = 12.0
LOOK_AT_SLOTS_S = 20.0
HEARD = ["control.scheduler.allocation.>"]

log = structlog.get_logger()


class Worker:
    """One worker process."""

    def __init__(
        self, settings: WorkerSettings, me: Identity, connection: Client, tracer: Tracer | None = None
    ) -> None:
        self._settings = settings
        self._id = me.worker_id
        self._tracer = tracer
        self._connection = connection
        self._journal = JetStreamLog(connection)
        self.cluster_look = ClusterLook(connection, asks=False)
        self._feed: JetStreamFeed | None = None
        self._orders = Orders(settings.worker_home)
        store = blobs.connect(
            settings.blobs,
            endpoint_url=settings.s3_endpoint_url,
            access_key=settings.s3_access_key,
            secret_key=settings.s3_secret_key,
        )
        self._preparer = Preparer(settings, store, settings.worker_home / "contexts", me.instance)
        where = settings.worker_address or _towards(connection)
        self._presence = Presence(me, settings.worker_pool, where, self._journal)
        file = ContactFile(settings.worker_home / CONTACT)
        self._contact = Contact(self._journal, self._id, lambda: self._read, file.note)
        artificial = None if settings.worker_gpu else settings.worker_slots
        self._inventory = slots.Inventory(settings.worker_home / "slots.json", artificial)
        self._slots = self._inventory.look()
        self._read = 0
        """Position of CONTROL up to which everything was acted on."""
        self._current = asyncio.Event()
        """All that was in the log has been read once."""
        self._one_at_a_time = asyncio.Lock()
        """Registrations must reach the log in the order in which they are true."""
        self._runs: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def readings(self) -> Iterable[Reading]:
        """What operators see of this worker."""
        for name, help, value in (
            ("worker_runs", "Runs of tasks on this worker", len(self._runs)),
            ("worker_slots", "Slots that this worker offers", len(self._slots)),
            ("log_read", "Position of CONTROL up to which everything was acted on", self._read),
            ("broker_connected", "1 while connected to the broker", self._connection.is_connected),
        ):
            yield Reading(name, help, (), {(): float(value)})

    def facts(self) -> Facts:
        """Where to see how this worker does."""
        return Facts(
            connection=self._connection,
            look=self.cluster_look,
            starting=lambda: "" if self._current.is_set() else f"reading the log, at position {self._read}",
            behind=lambda: {subjects.CONTROL: self._feed.behind} if self._feed is not None else {},
            position=lambda _: self._read,
            reads_all=False,
            refusals=self._journal.refusals,
        )

    async def work(self) -> None:
        """Register, then hear and run until cancelled."""
        after = self._orders.position()
        if after is None:
            after = await self._end_of_log()
            self._orders.read_up_to(after)
        self._read = after
        found = [self._take_up(order) for order in self._orders.all()]
        await asyncio.to_thread(self._preparer.clear_all_but, set(self._runs))
        lost = {run.id for run in found if await asyncio.to_thread(run.is_lost)}
        for run in found:
            if run.id in lost and run.fenced:
                await asyncio.to_thread(run.bury)
        # Only then on with the runs: what is lost ends with its machine, and not by what it is found to be.
        await self._register(self._slots, [id for id in self._runs if id not in lost], after)
        for run in found:
            self._set_off(run)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._presence.beat(self._connection.publish))
            tasks.create_task(self._contact.keep())
            tasks.create_task(self._listen(after))
            if self._settings.worker_gpu:
                tasks.create_task(self._watch_slots())

    async def _end_of_log(self) -> int:
        """The last position of CONTROL, as soon as there is such a stream."""
        while True:
            try:
                return (await self._journal.bounds(subjects.CONTROL))[1]
            except OutcomeUnknown as error:
                log.info("log.awaited", error=str(error))
                await asyncio.sleep(0.1)

    async def leave(self) -> None:
        """End everything that runs here and tell the cluster that this worker is gone."""
        for run in list(self._runs.values()):
            await run.kill(run.order.killed or STOPPED)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LEAVE_S)
        for task in self._tasks:
            task.cancel()
        if any(run.fenced and not run.done.is_set() for run in self._runs.values()):
            log.warning("worker.leaves_unsaid", reason="runs that must be over first are not")
            return
        await self._presence.leave()

    async def _register(self, slots: tuple[Slot, ...], running: Collection[str], position: int) -> None:
        try:
            async with self._one_at_a_time:
                await self._presence.register(slots, running, position)
        except IdTaken as error:
            await self._give_way(str(error))
            raise

    async def _give_way(self, reason: str) -> None:
        """Another one has the id: what still runs here is over for the cluster, and of no use."""
        for run in list(self._runs.values()):
            await run.kill(reason)

    async def _end_lost(self, position: int, reason: str) -> None:
        """End what may start elsewhere, before there is contact again by which it would be let run on."""
        for run in list(self._runs.values()):
            if run.fenced and run.order.position < position:
                await run.kill(reason)

    async def _come_back(self, position: int, reason: str) -> None:
        """Given up for lost, but here: offer the slots again, as another session."""
        log.warning("worker.was_lost", reason=reason)
        await self._register(self._slots, self._runs, position)

    async def _replaced(self, other: WorkerRegistered) -> None:
        reason = (
            f"another process on host {other.host} has registered as worker '{self._id}' with a copy of this "
            "one's folder: remove the copy, or this worker"
        )
        await self._give_way(reason)
        raise IdTaken(reason)

    async def _watch_slots(self) -> None:
        """An accelerator that fails while the worker runs is offered no more, and what ran on it ends.

        Only what two looks agree on is believed: a driver may be away for a moment.
        """
        before = self._slots
        while True:
            await asyncio.sleep(LOOK_AT_SLOTS_S)
            found = await asyncio.to_thread(self._inventory.look)
            if found == before != self._slots:
                await self._change_slots(found)
            before = found

    async def _change_slots(self, found: tuple[Slot, ...]) -> None:
        log.warning("worker.slots_changed", before=len(self._slots), now=len(found))
        # First told, then refused and ended: what ends because of it is nobody's failure.
        await self._register(found, self._runs, self._read)
        self._slots = found
        for run in list(self._runs.values()):
            if not run.slots <= {slot.id for slot in found}:
                await run.kill(self._without_slots())

    def _without_slots(self) -> str:
        return f"worker {self._id} lost slots that it ran on"

    async def _listen(self, after: int) -> None:
        registered = subjects.control("worker.registered", self._id)
        heard = [*HEARD, subjects.about_worker(self._id), registered]
        async with self._journal.read(subjects.CONTROL, after=after, subjects=heard) as feed:
            self._feed = feed
            while True:
                batch = await feed.batch()
                for stored in batch.messages:
                    await self._on_event(read_event(stored).event, stored.position, stored.trace)
                if batch.messages:
                    self._note_position(batch.messages[-1].position)
                if batch.caught_up:
                    self._current.set()

    def _note_position(self, position: int) -> None:
        self._read = position
        try:
            self._orders.read_up_to(position)
        except OSError as error:
            # Read again after a restart: every order that was taken is known by its folder.
            log.warning("position.not_noted", position=position, error=str(error))

    async def _on_event(self, event: Any, position: int, trace: str) -> None:
        match event:
            case AllocationAssigned() if any(p.worker_id == self._id for p in event.parts):
                if self._orders.get(event.allocation_id) is None:
                    await self._accept(Order(event, position=position), trace)
            case KillRequested() if event.allocation_id in self._runs:
                await self._runs[event.allocation_id].kill(event.reason)
            case AllocationEnded() if event.allocation_id in self._runs:
                # Over for the cluster: what still runs of it was given up for lost.
                await self._runs[event.allocation_id].kill(event.reason)
                self._runs[event.allocation_id].let_go()
                self._clear_away(event.allocation_id)
            case WorkerLost():
                await self._end_lost(position, event.reason)
                if position > self._presence.position:
                    await self._come_back(position, event.reason)
            case WorkerRegistered() if self._presence.replaced_by(event, position):
                await self._replaced(event)

    async def _accept(self, order: Order, trace: str) -> None:
        try:
            await asyncio.to_thread(self._orders.keep, order)
        except OSError as error:
            # What cannot be written down could not be found again: it is given back at once.
            message = f"worker {self._id} cannot take the task: {error}"
            log.error("order.refused", allocation=order.assigned.allocation_id, error=str(error))
            workdir.remove(self._orders.folder(order.assigned.allocation_id))
            await self._give_back(order.assigned.allocation_id, message)
            return
        run = self._take_up(order)
        if self._tracer is not None and trace:
            from worker.launch_trace import LaunchTrace

            run.trace = LaunchTrace(self._tracer, trace, run.id)
        self._set_off(run)

    async def _give_back(self, allocation_id: str, message: str) -> None:
        worker_id = self._id
        fact = AllocationExited(worker_id=worker_id, allocation_id=allocation_id, message=message)
        id = f"exited-{allocation_id}-{worker_id}"
        body = codec.encode(fact, id=id, actor=f"worker:{worker_id}", at=time.time())
        await self._journal.append(Draft(codec.subject_of(fact), body, id))

    def _take_up(self, order: Order) -> Run:
        worker_id = self._id
        mine = next(p for p in order.assigned.parts if p.worker_id == worker_id)
        devices = tuple(slot for slot in self._slots if slot.id in mine.slots)
        if len(devices) < len(mine.slots) and not order.killed:
            order = msgspec.structs.replace(order, killed=self._without_slots())
        run = Run(order, self._orders, self._journal, self._preparer, devices, worker_id, self._turn_of)
        self._runs[run.id] = run
        return run

    def _set_off(self, run: Run) -> None:
        taken = {port for other in self._runs.values() if other is not run for port in other.ports()}
        task = asyncio.create_task(self._carry_out(run, taken))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, run: Run, taken: set[int]) -> None:
        try:
            await run.carry_out(taken)
        except Exception:
            log.exception("run.failed", allocation=run.id)
            await run.report_failure("the worker failed on this task; see the worker's log")
        finally:
            # Others may wait for its slots.
            run.done.set()
        # At once: it may hold much, and nobody looks at it again.
        await asyncio.to_thread(self._preparer.clear, run.id)
        self._clear_away(run.id)

    async def _turn_of(self, run: Run) -> None:
        """When a run may start: all of the log is read, and nobody is left on its slots.

        What was read of it first may be over further on, and whoever was given up for lost is killed by then.
        """
        await self._current.wait()
        if run.fenced:
            await self._contact.fresh()
        for other in list(self._runs.values()):
            if other is not run and other.order.killed and other.slots & run.slots:
                await other.done.wait()

    def _clear_away(self, allocation_id: str) -> None:
        """Remove a run's files once it is over here and for the cluster."""
        run = self._runs.get(allocation_id)
        if run is not None and run.done.is_set() and run.order.over:
            del self._runs[allocation_id]
            workdir.remove(run.folder)


def _towards(connection: Client) -> str:
    broker = connection.connected_url
    return address.towards(broker.hostname or "", broker.port or 4222) if broker else address.LOOPBACK


def main() -> None:
    """Run a worker until SIGTERM or SIGINT; exit status 2 for settings that make no sense."""
    try:
        settings = load(WorkerSettings, os.environ)
        tracer = tracing.configure("worker", os.environ)
        accounts = Accounts(settings.worker_run_as)
        me = claim(settings.worker_home, settings.worker_id)
    except (BadSettings, BadAccount, CannotBe, OSError) as error:
        print(f"worker: {error}", file=sys.stderr)
        sys.exit(2)
    logging.configure(settings.log_format, settings.log_level, worker=me.worker_id)
    if accounts.warning:
        log.warning("tasks.not_apart", reason=accounts.warning)
    process.run(_until_stopped(replace(settings, worker_id=me.worker_id), me, tracer))


async def _until_stopped(settings: WorkerSettings, me: Identity, tracer: Tracer | None) -> int:
    """Exit status."""
    measures = Measures("worker")
    disks = Disks({"runs": settings.worker_home}, settings.disk_reserve_mib)
    measures.read(disks.readings, disks.look)
    watch = SelfWatch(f"worker {settings.worker_id}", settings, measures)
    with watch.shown():
        watch.begin("waiting for the broker")
        connection = await connect(settings, f"worker {settings.worker_id}")
        worker = Worker(settings, me, connection, tracer)
        measures.read(worker.readings)
        return await _work(worker, connection, watch, settings, tracer)


async def _work(
    worker: Worker,
    connection: Client,
    watch: SelfWatch,
    settings: WorkerSettings,
    tracer: Tracer | None,
) -> int:
    with watch.watching_loop():
        beside = [
            asyncio.ensure_future(watch.run(worker.facts())),
            asyncio.ensure_future(worker.cluster_look.run()),
            asyncio.ensure_future(tell_signs(connection, watch.conditions, settings.worker_id)),
        ]
        work = asyncio.ensure_future(worker.work())
        closed = asyncio.ensure_future(until_closed(connection))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, work.cancel)
        ended, going = await asyncio.wait([work, closed, *beside], return_when=asyncio.FIRST_COMPLETED)
    if not work.cancelled():
        failure = (work if work.done() else next(iter(ended))).exception()
        for error in process.single_errors(failure):
            log.critical("worker.failed", error=str(error) or repr(error), exc_info=error)
        process.leave(1)
    for task in going:
        task.cancel()
    await worker.leave()
    await leave(connection)
    if tracer is not None:
        tracer.flush()
    return 0
