"""One allocation on this worker, from its assignment until nothing is left of it.

Every step is recorded on disk or can be determined from it, so a worker that was killed resumes the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec
import structlog

from det_contracts.events.worker import AllocationExited, AllocationStarted, Slot
from det_contracts.ids import container_id
from services.kit.log import Log
from services.kit.readable import wait_until_readable
from worker import hidden_values, permanent_failure, process
from worker.briefing import share_of
from worker.environment import PORTS
from worker.fact_outbox import append_fact
from worker.log_shipping import SETUP, Shipper
from worker.orders import Order, Orders
from worker.output_spool import SpoolReader
from worker.run_setup import CannotPrepare, Preparer
from worker.warm.warm_start import ColdStart, WarmStart

if TYPE_CHECKING:
    from worker.launch_trace import LaunchTrace
    from worker.warm.template_pool import TemplatePool

POLL_EVERY_S = 0.25
STOPPED = "the worker is stopped"
KILLED = 128 + signal.SIGKILL
UNMET, PULLING = 0, 1
"""Order of the lines about what comes before the start of a run, which have a source of their own."""
FAILURE, ENDING = 2, 3
"""Order of the worker's other lines; the line about the start is 0."""
PREPARATIONS = ThreadPoolExecutor(64, "preparations")
"""Threads of their own: a store that a task names may be slow to answer, and no kill must wait for that."""
LOST_SHIM_REASON = "the worker found its shim gone and could not learn how the task ended"

log = structlog.get_logger()


class Run:
    """Executes one order."""

    def __init__(
        self,
        order: Order,
        orders: Orders,
        journal: Log,
        preparer: Preparer,
        slots: tuple[Slot, ...],
        worker: str,
        turn: Callable[[Run], Awaitable[None]],
        template_pool: TemplatePool | None = None,
    ) -> None:
        self.order = order
        assigned = order.assigned
        self._orders = orders
        self._journal = journal
        self._preparer = preparer
        self._slots = slots
        self._worker = worker
        self.folder = orders.folder(assigned.allocation_id)
        self._shipper = Shipper(journal, assigned.task_id, assigned.allocation_id, worker)
        self._wait_until_allowed = turn
        self._template_pool = template_pool
        self._start_plan: WarmStart | ColdStart = ColdStart("it was prepared by an earlier worker process")
        self._kill_ordered = asyncio.Event()
        self._kill_sent = False
        if order.killed:
            self._kill_ordered.set()
        self.trace: LaunchTrace | None = None
        """The trace of its start, if tracing is on."""
        self.done = asyncio.Event()
        """Set when there is nothing more to do for it here."""

    @property
    def id(self) -> str:
        """The allocation id."""
        return self.order.assigned.allocation_id

    @property
    def slots(self) -> set[int]:
        """The slots that it holds on this worker."""
        return {s for p in self.order.assigned.parts if p.worker_id == self._worker for s in p.slots}

    def is_lost(self) -> bool:
        """Whether its processes were lost with their machine or worker instead of ending by themselves."""
        if self.order.reported:
            return False
        if self.order.killed == STOPPED:
            recorded = process.read_exit(self.folder)
            return recorded is None or recorded.code == KILLED
        return process.state_of(self.folder) == "lost"

    @property
    def devices(self) -> tuple[Slot, ...]:
        """The devices behind its slots."""
        return self._slots

    @property
    def fenced(self) -> bool:
        """Whether it must be over here before it may be started elsewhere."""
        return self.order.assigned.fence_s > 0

    def end_lost_run(self) -> None:
        """End what a lost run left behind. Blocks."""
        if process.state_of(self.folder) == "lost":
            process.end_lost_run(self.folder, LOST_SHIM_REASON, lost=True)

    def ports(self) -> set[int]:
        """The ports that this run's scripts may listen on."""
        try:
            spec = msgspec.json.decode((self.folder / "spec.json").read_bytes())
        except (FileNotFoundError, msgspec.DecodeError):
            return set()
        return {int(spec["env"][name]) for name in PORTS if name in spec["env"]}

    async def execute(self, used_ports: set[int]) -> None:
        """Start the run if it has not started, follow it to its end, and report the end."""
        if self.order.reported:
            return
        message = ""
        try:
            await self._start(used_ports)
        except (CannotPrepare, process.StartFailed) as error:
            message = str(error)
        if message or not self.order.started_at:
            if self.trace is not None:
                self.trace.finish(message or "killed")
            await self._report_exit(None, message or f"ended before it was started: {self.order.killed}")
            return
        ended = asyncio.Event()
        if self.trace is not None:
            self._shipper.on_first_stored = self.trace.finish
        shipping = asyncio.create_task(self._shipper.ship(SpoolReader(self.folder), ended))
        try:
            exit = await self._wait_for_exit()
        finally:
            # Shipping goes on until the spool is read to its end, so that the log is complete before the exit
            # is known.
            ended.set()
            await shipping
        message = self.order.exceeded if exit.code else ""
        await self._report_exit(exit.code, message or exit.message, lost=exit.lost)
        if self._template_pool is not None:
            await self._template_pool.record_end(self.folder, self._start_plan)

    async def _start(self, used_ports: set[int]) -> None:
        state = process.state_of(self.folder)
        if state == "prepared":
            await self._wait_for_turn()
            if not self.order.killed and not self._is_prepared:
                if self.order.briefing is None:
                    raise CannotPrepare("an earlier version of the worker did not record what to run")
                briefing = share_of(self._worker, self.order.briefing)
                prepare, position = self._preparer.prepare, self.order.position
                self._start_plan, notices = await asyncio.get_running_loop().run_in_executor(
                    PREPARATIONS, prepare, self.folder, briefing, self._slots, position, used_ports
                )
                await self._shipper.add_worker_lines(UNMET, "WARNING", *notices, source=SETUP)
            if not self.order.killed:
                await self._wait_unless_killed(self._wait_for_origin())
            # A run that was killed while it was being prepared must not be reported as started.
            if self.order.killed:
                return
            await self._launch()
        if not self.order.started_at:
            await self._log_start()
            self._update_order(started_at=time.time())
        header = self.trace.started() if self.trace is not None else ""
        # Again after each restart of the worker, which cannot know whether the first one arrived. The fold
        # ignores repeats.
        await append_fact(self._journal, self._worker, AllocationStarted(self._worker, self.id), header)
        if self._must_end:
            await self._send_kill()

    async def _wait_for_origin(self) -> None:
        """Wait for the image of its container, or for the template that it is forked from."""
        await self._preparer.fetch_image(self.folder, self._log_pulling)
        if self._template_pool is not None:
            await self._template_pool.wait_for_template(self._start_plan)

    @property
    def _is_prepared(self) -> bool:
        """Whether a worker process before this one has prepared it to the end."""
        return process.is_prepared(self.folder) and hidden_values.are_saved(self.folder)

    @property
    def _must_end(self) -> bool:
        return bool(self.order.killed or self.order.exceeded)

    async def _log_start(self) -> None:
        """Begin a trial's log with where it runs. None of its output has been shipped yet."""
        if self.order.assigned.kind == "TRIAL":
            where = f"(container {container_id(self.id, self._worker)}) on agent {self._worker}"
            await self._shipper.add_worker_lines(0, "INFO", f"New trial runner in {where}")

    async def _launch(self) -> None:
        """Start a prepared run. Raises `StartFailed`."""
        why = "there are no templates"
        if self._template_pool is not None:
            why = await self._template_pool.start(self.folder, self._start_plan)
        if why:
            await asyncio.to_thread(process.start, self.folder)
        log.info("run.started", allocation=self.id, warm=not why, reason=why)

    async def _send_kill(self) -> None:
        self._kill_sent = await asyncio.to_thread(process.kill, self.folder)

    async def _wait_for_turn(self) -> None:
        """Wait until its slots are free and its order is confirmed, or until it is killed."""
        await self._wait_unless_killed(self._wait_until_allowed(self))

    async def _log_pulling(self, text: str) -> None:
        await self._shipper.add_worker_lines(PULLING, "INFO", text, source=SETUP)

    async def _wait_unless_killed(self, work: Awaitable[None]) -> None:
        """Wait for `work` to finish or the run to be killed, whichever comes first."""
        running = asyncio.ensure_future(work)
        killed = asyncio.ensure_future(self._kill_ordered.wait())
        try:
            await asyncio.wait([running, killed], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
        finally:
            running.cancel()
            killed.cancel()

    def _update_order(self, **changes: object) -> None:
        self.order = msgspec.structs.replace(self.order, **changes)
        try:
            self._orders.save(self.order)
        except OSError as error:
            # What the note records can be determined or reported again after a restart.
            log.warning("order.not_noted", allocation=self.id, error=str(error))

    async def _wait_for_exit(self) -> process.Exit:
        while True:
            state = process.state_of(self.folder)
            if state == "exited":
                recorded = process.read_exit(self.folder)
                if recorded is not None:
                    return recorded
            if state == "running" and self._must_end and not self._kill_sent:
                # The kill was ordered while the shim was starting and could not be found yet.
                await self._send_kill()
                if not self._kill_sent:
                    await asyncio.sleep(POLL_EVERY_S)
                    continue
            if state == "lost":
                return await asyncio.to_thread(process.end_lost_run, self.folder, LOST_SHIM_REASON)
            await self._wait_for_shim()

    async def _wait_for_shim(self) -> None:
        """Return when the shim may have ended, or after a short wait if that cannot be watched."""
        try:
            running = msgspec.json.decode((self.folder / "running.json").read_bytes(), type=process.Running)
            pidfd = os.pidfd_open(running.shim.pid)
        except (OSError, AttributeError):
            await asyncio.sleep(POLL_EVERY_S)
            return
        try:
            await wait_until_readable(pidfd, 60)
        finally:
            os.close(pidfd)

    async def kill(self, reason: str) -> None:
        """Kill what runs at once, and prevent what is about to start."""
        self._update_order(killed=reason or "killed")
        self._kill_ordered.set()
        with contextlib.suppress(OSError):
            await self._send_kill()

    async def end_as_failed(self, reason: str) -> None:
        """Kill what runs because it has exceeded a limit of this worker. Its end counts as a failure."""
        log.warning("run.exceeds", allocation=self.id, reason=reason)
        self._update_order(exceeded=reason)
        with contextlib.suppress(OSError):
            await self._send_kill()

    def mark_over(self) -> None:
        """Record that the cluster knows the run is over."""
        self._update_order(over=True)

    async def report_failure(self, message: str) -> None:
        """Report that this worker could not complete the run."""
        await self.kill(message)
        await self._report_exit(None, message)

    async def _report_exit(self, code: int | None, message: str, *, lost: bool = False) -> None:
        if self.order.killed == STOPPED and code in (None, KILLED):
            # Reported when the worker leaves or registers again; the run has not failed.
            return
        if message:
            # What others needed the slots for, or a user stopped, has not failed.
            await self._shipper.add_worker_lines(FAILURE, "INFO" if self.order.killed else "ERROR", message)
        if self.order.assigned.kind == "COMMAND" and code is not None and not (lost or self.order.killed):
            # The last line that clients of commands wait for, in Determined's wording.
            await self._shipper.add_worker_lines(ENDING, *_exit_line(code))
        cause = "" if lost or self.order.killed else permanent_failure.cause(self.folder, code, message)
        fact = AllocationExited(
            worker_id=self._worker,
            allocation_id=self.id,
            exit_code=code,
            message=message or cause,
            lost=lost,
            permanent=bool(cause),
        )
        await append_fact(self._journal, self._worker, fact)
        # After the fact is stored: a worker that is killed in between reports the end twice, which is
        # harmless; never would not be.
        self._update_order(reported=True)


def _exit_line(code: int) -> tuple[str, str]:
    """Level and text of the last log line."""
    if code == 0:
        return "INFO", "resources exited successfully with a zero exit code"
    return "ERROR", f"task failed with exit code {code}"
