"""Starts, ends and forgets the runs of a worker, as its orders say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from det_contracts.events.worker import AllocationExited, Slot
from det_contracts.orders import Standing, WorkerOrders
from services.kit.log_jetstream import JetStreamLog
from worker import workdir
from worker.fact_outbox import append_fact
from worker.last_contact import Contact
from worker.orders import Order, Orders
from worker.run import Run
from worker.run_setup import Preparer
from worker.warm.template_pool import TemplatePool

if TYPE_CHECKING:
    from services.kit.spans import Tracer

OVER = "it is over as far as the cluster knows"
NEVER_HAPPENED = "the cluster's log was restored from a copy that is older than this run"

log = structlog.get_logger()


class Runs:
    """All runs that this worker has not been told to forget."""

    def __init__(
        self,
        worker_id: str,
        orders: Orders,
        journal: JetStreamLog,
        preparer: Preparer,
        template_pool: TemplatePool,
        contact: Contact,
        current: asyncio.Event,
        offered: Callable[[], tuple[Slot, ...]],
        tracer: Tracer | None,
    ) -> None:
        """`current` is set once orders answer this process's registration. `offered` returns its slots."""
        self._id = worker_id
        self._orders = orders
        self._journal = journal
        self._preparer = preparer
        self._template_pool = template_pool
        self._contact = contact
        self._orders_current = current
        self._offered = offered
        self._tracer = tracer
        # One at a time, and apart from all other work: a task may leave millions of files, and without a free
        # thread nothing would be started or killed here.
        self._removals = ThreadPoolExecutor(1, "removals")
        self._declined: set[str] = set()
        self.running: dict[str, Run] = {}
        """By allocation id."""
        self.tasks: set[asyncio.Task[None]] = set()
        """Background tasks: runs, and the removal of their files."""

    async def act_on(self, orders: WorkerOrders, *, set_back: bool = False) -> None:
        """Bring all runs in line with the orders. Repeating the same orders changes nothing.

        `set_back`: the orders follow from an older copy of the log than the previous ones. Runs that only the
        previous ones contain never happened, and their ids may be reused for other runs.
        """
        standing_by_id = {standing.allocation_id: standing for standing in orders.allocations}
        # What the cluster no longer lists needs no memory; an id never returns in the same log.
        self._declined &= standing_by_id.keys()
        for run in list(self.running.values()):
            listed = standing_by_id.get(run.id)
            # Workers of earlier versions did not record the position.
            is_other_run = listed is not None and run.order.position not in (0, listed.position)
            if is_other_run and not run.order.killed:
                # Its exit also counts for the other run of that id, which is then restarted under a new id.
                await run.kill(NEVER_HAPPENED)
            elif listed is None and (set_back or run.order.killed == NEVER_HAPPENED):
                await self._end_unlisted(run, NEVER_HAPPENED)
            elif listed is None and run.order.position <= orders.position:
                await self._end_unlisted(run)
            elif run.id in standing_by_id and standing_by_id[run.id].end and not run.order.killed:
                await run.kill(standing_by_id[run.id].end)
        for standing in orders.allocations:
            is_over = standing.lost or standing.allocation_id in self._declined
            if standing.allocation_id not in self.running and not is_over:
                self._accept_or_decline(standing)

    async def _end_unlisted(self, run: Run, why: str = OVER) -> None:
        """The cluster has dropped the run: kill what still runs of it."""
        if not run.done.is_set():
            await run.kill(run.order.killed or why)
        run.mark_over()
        self._remove_if_over(run.id)

    def _accept_or_decline(self, standing: Standing) -> None:
        if standing.end or standing.problem:
            self._decline(
                standing.allocation_id, standing.problem or f"ended before it was started: {standing.end}"
            )
        elif standing.briefing is None:
            # It had started, but this disk has nothing of it.
            self._decline(standing.allocation_id, "its order is gone", lost=True)
        else:
            order = Order(standing.briefing.assigned, position=standing.position, briefing=standing.briefing)
            self._accept(order, standing.briefing.trace)

    def _accept(self, order: Order, trace: str) -> None:
        try:
            # Before anything starts: after a crash, only what is recorded can be found and ended.
            self._orders.save(order)
        except OSError as error:
            # A run that is not recorded could not be found again, so give it back at once.
            message = f"worker {self._id} cannot take the task: {error}"
            log.error("order.refused", allocation=order.assigned.allocation_id, error=str(error))
            workdir.remove(self._orders.folder(order.assigned.allocation_id))
            self._decline(order.assigned.allocation_id, message)
            return
        run = self.create_run(order)
        if self._tracer is not None and trace:
            from worker.launch_trace import LaunchTrace

            run.trace = LaunchTrace(self._tracer, trace, run.id)
        self.start_run(run)

    def _decline(self, allocation_id: str, message: str, *, lost: bool = False) -> None:
        self._declined.add(allocation_id)
        fact = AllocationExited(worker_id=self._id, allocation_id=allocation_id, message=message, lost=lost)
        # In the background: while the log takes nothing, orders to end other runs must still be followed.
        self._begin(append_fact(self._journal, self._id, fact))

    def create_run(self, order: Order) -> Run:
        """Create the run of an order that is on disk. It does nothing until `start_run`."""
        worker_id = self._id
        mine = next(p for p in order.assigned.parts if p.worker_id == worker_id)
        devices = tuple(slot for slot in self._offered() if slot.id in mine.slots)
        if len(devices) < len(mine.slots) and not order.killed:
            order = msgspec.structs.replace(order, killed=self.lost_slots_reason())
        run = Run(
            order,
            self._orders,
            self._journal,
            self._preparer,
            devices,
            worker_id,
            self._wait_for_turn,
            self._template_pool,
        )
        self.running[run.id] = run
        return run

    def start_run(self, run: Run) -> None:
        """Carry a run out in the background."""
        used_ports = {port for other in self.running.values() if other is not run for port in other.ports()}
        self._begin(self._execute(run, used_ports))

    async def _execute(self, run: Run, used_ports: set[int]) -> None:
        try:
            await run.execute(used_ports)
        except Exception:
            log.exception("run.failed", allocation=run.id)
            await run.report_failure("the worker failed on this task; see the worker's log")
        finally:
            # Others may wait for its slots.
            run.done.set()
        # Clear now: it may hold much space, and nothing looks at it again.
        if self._preparer.has_files(run.id):
            await self._remove(self._preparer.clear, run.id)
        self._remove_if_over(run.id)

    async def _wait_for_turn(self, run: Run) -> None:
        """Wait until a run may start: its orders are current and no killed run still uses its slots.

        Orders from before this process began may be outdated; by then, runs that were given up have been
        killed.
        """
        await self._orders_current.wait()
        if run.fenced:
            await self._contact.wait_until_fresh()
        for other in list(self.running.values()):
            if other is not run and other.order.killed and other.slots & run.slots:
                await other.done.wait()

    def _remove_if_over(self, allocation_id: str) -> None:
        """Remove a run's files once it is over both here and for the cluster."""
        run = self.running.get(allocation_id)
        if run is not None and run.done.is_set() and run.order.over:
            del self.running[allocation_id]
            # In the background: other runs are waiting to start.
            self._begin(self._remove(workdir.remove, run.folder))

    def remove_set_aside(self) -> None:
        """Begin to remove files that an earlier process of this worker has left."""
        self._begin(self._remove(self._preparer.remove_set_aside))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _remove(self, remove: Callable[..., None], *named: object) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._removals, remove, *named)
        except OSError as error:
            log.error("folder.not_removed", named=[str(name) for name in named], error=str(error))

    def lost_slots_reason(self) -> str:
        """The reason for ending a run whose slots are no longer offered."""
        return f"worker {self._id} lost slots that it ran on"
