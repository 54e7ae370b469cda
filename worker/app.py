"""The worker process: registers its host's slots, follows its orders, and runs allocations."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import structlog
from nats.aio.client import Client

from det_contracts.events.worker import Slot
from det_contracts.orders import NO_ORDERS_YET, WorkerOrders
from services.kit import blobs, logging, process, tracing
from services.kit.connection import BrokerUnreachable, close, connect, raise_when_closed
from services.kit.credentials import worker_inbox
from services.kit.disks import Disks
from services.kit.health_reports import publish_health
from services.kit.log_jetstream import JetStreamLog
from services.kit.process_metrics import Measures, Reading
from services.kit.self_watch import SelfWatch, WatchSources
from services.kit.settings import BadSettings, load
from worker import address, credentials, disk_use, slots, utilisation
from worker.account import Accounts, BadAccount
from worker.control_groups import RunGroups, groups_of
from worker.identity import Identity, IdentityError, claim
from worker.last_contact import FILE as CONTACT
from worker.last_contact import Contact, ContactFile
from worker.launchers import BadLauncher
from worker.launchers.containers import check_launcher
from worker.order_feed import OrderFeed
from worker.orders import ActedOn, Orders
from worker.registration import IdTaken, Presence, check_offer
from worker.run import STOPPED
from worker.run_limits import limits_of
from worker.run_setup import Preparer
from worker.runs import Runs
from worker.sessions import Sessions
from worker.settings import WorkerSettings
from worker.warm.memory import Memory
from worker.warm.template_pool import TemplatePool

if TYPE_CHECKING:
    from services.kit.spans import Tracer

SHUTDOWN_TIMEOUT_S = 12.0
SLOT_CHECK_S = 20.0
REGISTRATION_TIMEOUT_S = 30.0
"""Register again if no orders answer a registration within this time, in seconds."""

log = structlog.get_logger()


class Worker:
    """One worker process."""

    def __init__(
        self,
        settings: WorkerSettings,
        me: Identity,
        connection: Client,
        tracer: Tracer | None = None,
        groups: RunGroups | None = None,
    ) -> None:
        """`groups` limit runs; if None, it is found out what this host can limit."""
        self._settings = settings
        self._id = me.worker_id
        self._connection = connection
        self._journal = JetStreamLog(connection)
        # The worker knows the cluster only through its orders, and decides only about itself.
        self._order_feed = OrderFeed(connection, me.worker_id)
        self._orders = Orders(settings.worker_home)
        store = blobs.connect(
            settings.blobs,
            endpoint_url=settings.s3_endpoint_url,
            access_key=settings.s3_access_key,
            secret_key=settings.s3_secret_key,
        )
        self._preparer = Preparer(settings, store, settings.worker_home / "contexts", me.instance, groups)
        where = settings.worker_address or _source_address(connection)
        self._presence = Presence(
            me,
            settings.worker_pool,
            where,
            self._journal,
            Sessions(settings.worker_home),
            launcher=settings.worker_launcher,
            limits=self._preparer.limits,
            holder=self._order_feed.holder,
        )
        file = ContactFile(settings.worker_home / CONTACT)
        self._contact = Contact(
            lambda: self._order_feed.is_newest(self._acted_on.sequence), file.record_in_thread
        )
        artificial = None if settings.worker_gpu else settings.worker_slots
        self._inventory = slots.Inventory(settings.worker_home / "slots.json", artificial)
        self._slots = self._inventory.scan()
        self._acted_on = ActedOn(NO_ORDERS_YET)
        """The newest orders that were acted on."""
        self._sessions: set[str] = set()
        """Sessions of this process that orders have answered."""
        self._orders_current = asyncio.Event()
        """Set once orders that answer this process's registration have arrived."""
        self._registration_lock = asyncio.Lock()
        """Registrations must reach the log in the order in which they were true."""
        self._template_pool = TemplatePool(self._has_idle_slot, Memory(), enabled=settings.worker_warm)
        self._runs = Runs(
            me.worker_id,
            self._orders,
            self._journal,
            self._preparer,
            self._template_pool,
            self._contact,
            self._orders_current,
            lambda: self._slots,
            tracer,
        )

    def readings(self) -> Iterable[Reading]:
        """Metrics of this worker, for operators."""
        for name, help, value in (
            ("worker_runs", "Runs of tasks on this worker", len(self._runs.running)),
            ("worker_templates", "Interpreters that runs may start from", self._template_pool.templates),
            ("worker_warm_starts", "Runs that started from one of them", self._template_pool.starts["warm"]),
            ("worker_cold_starts", "Runs that started an interpreter", self._template_pool.starts["cold"]),
            ("worker_slots", "Slots that this worker offers", len(self._slots)),
            ("orders_read", "Position of CONTROL up to which all orders were acted on", self._position()),
            ("broker_connected", "1 while connected to the broker", self._connection.is_connected),
        ):
            yield Reading(name, help, (), {(): float(value)})

    def _has_idle_slot(self) -> bool:
        used_slots = {
            slot for run in self._runs.running.values() if not run.done.is_set() for slot in run.slots
        }
        return len(used_slots) < len(self._slots)

    def facts(self) -> WatchSources:
        """The facts that the worker's health page shows."""
        return WatchSources(
            connection=self._connection,
            look=None,
            starting=lambda: "" if self._orders_current.is_set() else "waiting for its first orders",
            lag=dict,
            position=lambda _: self._position(),
            reads_all=False,
            refusals=self._journal.refusals,
        )

    def _position(self) -> int:
        return 0 if self._acted_on.position == NO_ORDERS_YET else self._acted_on.position

    async def run(self) -> None:
        """Register, then follow orders and run allocations until cancelled."""
        self._acted_on = self._orders.acted_on() or ActedOn(NO_ORDERS_YET)
        runs = [self._runs.create_run(order) for order in self._orders.all()]
        await asyncio.to_thread(self._preparer.remove_all_except, set(self._runs.running))
        lost = {run.id for run in runs if await asyncio.to_thread(run.is_lost)}
        for run in runs:
            if run.id in lost and run.fenced:
                await asyncio.to_thread(run.end_lost_run)
        # Register before resuming the runs, so that lost runs end as lost with their machine and not with an
        # exit reported by this process.
        await self._register(self._slots, [id for id in self._runs.running if id not in lost])
        for run in runs:
            self._runs.start_run(run)
        self._runs.remove_set_aside()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._presence.send_heartbeats(self._connection.publish))
            tasks.create_task(self._contact.run_forever())
            tasks.create_task(self._follow_orders())
            tasks.create_task(self._repeat_unanswered_registration())
            tasks.create_task(self._template_pool.run_forever())
            tasks.create_task(credentials.renew(self._settings, self._preparer, self._runs.running))
            tasks.create_task(utilisation.watch(self._settings, self._id, self._runs.running))
            tasks.create_task(disk_use.watch(self._settings, self._preparer, self._runs.running))
            if self._settings.worker_gpu:
                tasks.create_task(self._watch_slots())

    async def shut_down(self) -> None:
        """End everything that runs here, and report that this worker has left."""
        for run in list(self._runs.running.values()):
            await run.kill(run.order.killed or STOPPED)
        if self._runs.tasks:
            await asyncio.wait(self._runs.tasks, timeout=SHUTDOWN_TIMEOUT_S)
        for task in self._runs.tasks:
            task.cancel()
        if any(run.fenced and not run.done.is_set() for run in self._runs.running.values()):
            log.warning("worker.leaves_unsaid", reason="fenced runs have not ended")
            return
        await self._presence.leave()

    async def _register(self, slots: tuple[Slot, ...], running: Collection[str]) -> None:
        try:
            async with self._registration_lock:
                await self._presence.register(slots, running, self._acted_on.position)
        except IdTaken as error:
            await self._kill_all_runs(str(error))
            raise

    async def _kill_all_runs(self, reason: str) -> None:
        """Another worker has the id: end what still runs here, as it is over for the cluster."""
        for run in list(self._runs.running.values()):
            await run.kill(reason)

    async def _register_again(self) -> None:
        """This worker was declared lost but is alive: offer the slots again in a new session."""
        log.warning("worker.was_lost")
        await self._register(self._slots, self._runs.running)

    async def _stop_as_replaced(self) -> None:
        reason = (
            f"another process has registered as worker '{self._id}' with a copy of this one's folder: "
            "remove the copy, or this worker"
        )
        await self._kill_all_runs(reason)
        raise IdTaken(reason)

    async def _watch_slots(self) -> None:
        """Withdraw an accelerator that fails while the worker runs, and end what ran on it.

        A change counts only if two consecutive checks agree, because a driver may be unavailable for a
        moment.
        """
        before = self._slots
        while True:
            await asyncio.sleep(SLOT_CHECK_S)
            slots = await asyncio.to_thread(self._inventory.scan)
            if slots == before != self._slots:
                await self._change_slots(slots)
            before = slots

    async def _change_slots(self, slots: tuple[Slot, ...]) -> None:
        log.warning("worker.slots_changed", before=len(self._slots), now=len(slots))
        # Report the change before ending any run, so that runs which end because of it do not count as
        # failed.
        await self._register(slots, self._runs.running)
        self._slots = slots
        for run in list(self._runs.running.values()):
            if not run.slots <= {slot.id for slot in slots}:
                await run.kill(self._runs.lost_slots_reason())

    async def _repeat_unanswered_registration(self) -> None:
        """Register again if no orders answer. Of several workers that claim an id, one may be passed over."""
        while True:
            session = self._presence.session
            await asyncio.sleep(REGISTRATION_TIMEOUT_S)
            if self._presence.session == session and session not in self._sessions:
                log.warning("register.unanswered", session=session)
                await self._register(self._slots, self._runs.running)

    async def _follow_orders(self) -> None:
        while True:
            news = await self._order_feed.next()
            try:
                orders = msgspec.json.decode(news.body, type=WorkerOrders)
            except msgspec.MsgspecError as error:
                # Possibly written by a newer version. New orders arrive when anything changes.
                log.error("orders.unreadable", sequence=news.sequence, error=str(error))
                continue
            if await self._answers_latest_registration(orders) and self._are_newer(orders, news.sequence):
                set_back = orders.position < self._acted_on.position != NO_ORDERS_YET
                if set_back:
                    log.warning("log.set_back", position=orders.position, acted_on=self._acted_on.position)
                await self._runs.act_on(orders, set_back=set_back)
                if orders.presence == "lost":
                    await self._register_again()
                self._record_acted_on(ActedOn(orders.position, news.sequence))
                self._orders_current.set()
            await self._order_feed.acted_on(news)

    async def _answers_latest_registration(self, orders: WorkerOrders) -> bool:
        """Whether the orders answer this process's newest registration. Raises `IdTaken`."""
        try:
            self._presence.raise_if_refused(orders)
        except IdTaken as error:
            await self._kill_all_runs(str(error))
            raise
        answered = self._presence.session in self._sessions
        mine, own = orders.session == self._presence.session, self._presence.is_own_session(orders.session)
        if mine:
            self._sessions.add(orders.session)
        elif self._orders_current.is_set() and orders.presence == "here" and not own:
            await self._stop_as_replaced()
        elif answered:
            # The worker that had taken the id is gone, or an earlier registration was delivered late: even
            # one of a process before this one.
            await self._register_again()
        return mine

    def _are_newer(self, orders: WorkerOrders, sequence: int) -> bool:
        """Whether the orders come after those that were acted on.

        The scheduler never writes orders of an earlier position after those of a later one. If it has, the
        log was restored from an older copy, and what was ordered in between never happened.
        """
        later = orders.position >= self._acted_on.position or self._acted_on.position == NO_ORDERS_YET
        return later or sequence > self._acted_on.sequence or not self._orders_current.is_set()

    def _record_acted_on(self, acted_on: ActedOn) -> None:
        self._acted_on = acted_on
        try:
            self._orders.record(acted_on)
        except OSError as error:
            # The orders are delivered again after a restart, and those already taken are recognised by their
            # folders.
            log.warning("position.not_noted", position=acted_on.position, error=str(error))


def _source_address(connection: Client) -> str:
    broker = connection.connected_url
    return (
        address.source_address_for(broker.hostname or "", broker.port or 4222) if broker else address.LOOPBACK
    )


def main() -> None:
    """Run a worker until SIGTERM or SIGINT. Exits with status 2 if the settings are invalid."""
    try:
        settings = load(WorkerSettings, os.environ)
        tracer = tracing.configure("worker", os.environ)
        accounts = Accounts(settings.worker_run_as)
        check_launcher(settings, accounts.default)
        check_offer(settings)
        me = claim(settings.worker_home, settings.worker_id)
        groups = groups_of(settings, me.instance)
    except (BadSettings, BadAccount, BadLauncher, IdentityError, OSError) as error:
        print(f"worker: {error}", file=sys.stderr)
        sys.exit(2)
    logging.configure(settings.log_format, settings.log_level, worker=me.worker_id)
    if accounts.warning:
        log.warning("tasks.not_apart", reason=accounts.warning)
    log.info("tasks.limits", **{limit.kind: limit.text for limit in limits_of(settings, groups, accounts)})
    process.run(_run(replace(settings, worker_id=me.worker_id), me, tracer, groups))


async def _run(settings: WorkerSettings, me: Identity, tracer: Tracer | None, groups: RunGroups) -> int:
    """Run the worker until it is stopped. Returns the exit status."""
    measures = Measures("worker")
    disks = Disks({"runs": settings.worker_home}, settings.disk_reserve_mib)
    measures.register(disks.readings, disks.refresh)
    watch = SelfWatch(f"worker {settings.worker_id}", settings, measures)
    with watch.serve_pages():
        watch.set_starting("waiting for the broker")
        settings = credentials.add_own_credentials(settings)
        inbox = worker_inbox(settings.worker_id)
        patience_s = settings.worker_broker_wait_s
        try:
            connection = await connect(settings, f"worker {settings.worker_id}", inbox, patience_s=patience_s)
        except BrokerUnreachable as error:
            # A job of Slurm that nobody watches would otherwise hold its node to the end of its time.
            log.critical("worker.failed", error=str(error))
            return 1
        worker = Worker(settings, me, connection, tracer, groups)
        measures.register(worker.readings)
        return await _supervise(worker, connection, watch, settings, tracer)


async def _supervise(
    worker: Worker,
    connection: Client,
    watch: SelfWatch,
    settings: WorkerSettings,
    tracer: Tracer | None,
) -> int:
    with watch.watch_loop():
        background = [
            asyncio.ensure_future(watch.run(worker.facts())),
            asyncio.ensure_future(publish_health(connection, watch.conditions, settings.worker_id)),
        ]
        run = asyncio.ensure_future(worker.run())
        closed = asyncio.ensure_future(raise_when_closed(connection))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, run.cancel)
        ended, unfinished = await asyncio.wait(
            [run, closed, *background], return_when=asyncio.FIRST_COMPLETED
        )
    if not run.cancelled():
        failure = (run if run.done() else next(iter(ended))).exception()
        for error in process.flatten_errors(failure):
            log.critical("worker.failed", error=str(error) or repr(error), exc_info=error)
        process.exit_now(1)
    for task in unfinished:
        task.cancel()
    await worker.shut_down()
    await close(connection)
    if tracer is not None:
        tracer.flush()
    return 0
