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
from typing import TYPE_CHECKING

import msgspec
import structlog

from det_contracts.events.worker import AllocationExited, AllocationStarted, Slot
from det_contracts.ids import container_id
from services.kit.log import Log, NotConfirmed, TooLarge
from services.kit.readable import readable
from worker import permanent, process
from worker.briefing import share_of
from worker.environment import PORTS
from worker.fact_outbox import draft
from worker.log_shipping import Shipper
from worker.orders import Order, Orders
from worker.output_spool import SpoolReader
from worker.run_setup import CannotPrepare, Preparer
from worker.warm.wanted import Cold, Wanted

if TYPE_CHECKING:
    from worker.launch_trace import LaunchTrace
    from worker.warm.nursery import Nursery

LOOK_S = 0.25
STOPPED = "the worker is stopped"
KILLED = 128 + signal.SIGKILL
UNMET, PULLING, FAILURE, ENDING = -2, -1, 2, 3
"""Order of the worker's own log lines; `Shipper` uses 1."""
EXITS_FOR_NOTHING = "the worker found its shim gone and could not learn how the task ended"

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
        nursery: Nursery | None = None,
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
        self._turn = turn
        self._nursery = nursery
        self._wanted: Wanted | Cold = Cold("it was prepared by an earlier worker process")
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

    def bury(self) -> None:
        """End what a lost run left behind. Blocks."""
        if process.state_of(self.folder) == "lost":
            process.bury(self.folder, EXITS_FOR_NOTHING, lost=True)

    def ports(self) -> set[int]:
        """The ports that this run's scripts may listen on."""
        try:
            spec = msgspec.json.decode((self.folder / "spec.json").read_bytes())
        except (FileNotFoundError, msgspec.DecodeError):
            return set()
        return {int(spec["env"][name]) for name in PORTS if name in spec["env"]}

    async def carry_out(self, taken: set[int]) -> None:
        """Start the run if it has not started, follow it to its end, and report the end."""
        if self.order.reported:
            return
        message = ""
        try:
            await self._start(taken)
        except (CannotPrepare, process.StartFailed) as error:
            message = str(error)
        if message or not self.order.started_at:
            if self.trace is not None:
                self.trace.over(message or "killed")
            await self._report(None, message or f"ended before it was started: {self.order.killed}")
            return
        ended = asyncio.Event()
        if self.trace is not None:
            self._shipper.on_first = self.trace.over
        shipping = asyncio.create_task(self._shipper.ship(SpoolReader(self.folder), ended))
        exit = await self._wait_for_exit()
        ended.set()
        await shipping
        await self._report(exit.code, exit.message, lost=exit.lost)
        if self._nursery is not None:
            await self._nursery.ended(self.folder, self._wanted)

    async def _start(self, taken: set[int]) -> None:
        state = await asyncio.to_thread(process.state_of, self.folder)
        if state == "prepared":
            await self._wait_for_turn()
            if not self.order.killed and not (self.folder / "spec.json").exists():
                if self.order.briefing is None:
                    raise CannotPrepare("an earlier version of the worker did not record what to run")
                briefing = share_of(self._worker, self.order.briefing)
                prepare, position = self._preparer.prepare, self.order.position
                self._wanted, notices = await asyncio.to_thread(
                    prepare, self.folder, briefing, self._slots, position, taken
                )
                await self._shipper.say(UNMET, "WARNING", *notices)
            if not self.order.killed:
                await self._unless_killed(self._preparer.fetch_image(self.folder, self._say_pulling))
            # A run that was killed while it was being prepared must not be reported as started.
            if self.order.killed:
                return
            await self._begin()
        if not self.order.started_at:
            await self._greet()
            self._note(started_at=time.time())
        header = self.trace.started() if self.trace is not None else ""
        await self._state(AllocationStarted(self._worker, self.id), "started", header)
        if self.order.killed:
            await self._send_kill()

    async def _greet(self) -> None:
        """Begin a trial's log with where it runs. None of its output has been shipped yet."""
        if self.order.assigned.kind == "TRIAL":
            where = f"(container {container_id(self.id, self._worker)}) on agent {self._worker}"
            await self._shipper.say(0, "INFO", f"New trial runner in {where}")

    async def _begin(self) -> None:
        """Start a prepared run. Raises `StartFailed`."""
        why = "there are no templates"
        if self._nursery is not None:
            why = await self._nursery.start(self.folder, self._wanted)
        if why:
            await asyncio.to_thread(process.start, self.folder)
        log.info("run.started", allocation=self.id, warm=not why, reason=why)

    async def _send_kill(self) -> None:
        self._kill_sent = await asyncio.to_thread(process.kill, self.folder)

    async def _wait_for_turn(self) -> None:
        """Wait until its slots are free and its order is confirmed, or until it is killed."""
        await self._unless_killed(self._turn(self))

    async def _say_pulling(self, text: str) -> None:
        await self._shipper.say(PULLING, "INFO", text)

    async def _unless_killed(self, work: Awaitable[None]) -> None:
        """Wait for `work` to finish or the run to be killed, whichever comes first."""
        working = asyncio.ensure_future(work)
        killed = asyncio.ensure_future(self._kill_ordered.wait())
        try:
            await asyncio.wait([working, killed], return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            working.cancel()
            killed.cancel()

    def _note(self, **changes: object) -> None:
        self.order = msgspec.structs.replace(self.order, **changes)
        try:
            self._orders.keep(self.order)
        except OSError as error:
            # What the note records can be determined or reported again after a restart.
            log.warning("order.not_noted", allocation=self.id, error=str(error))

    async def _wait_for_exit(self) -> process.Exit:
        while True:
            state = await asyncio.to_thread(process.state_of, self.folder)
            if state == "exited":
                recorded = process.read_exit(self.folder)
                if recorded is not None:
                    return recorded
            if state == "running" and self.order.killed and not self._kill_sent:
                # The kill was ordered while the shim was starting and could not be found yet.
                await self._send_kill()
                if not self._kill_sent:
                    await asyncio.sleep(LOOK_S)
                    continue
            if state == "lost":
                return await asyncio.to_thread(process.bury, self.folder, EXITS_FOR_NOTHING)
            await self._shim_ended()

    async def _shim_ended(self) -> None:
        """Return when the shim may have ended, or after a short wait if that cannot be watched."""
        try:
            running = msgspec.json.decode((self.folder / "running.json").read_bytes(), type=process.Running)
            watched = os.pidfd_open(running.shim.pid)
        except (OSError, AttributeError):
            await asyncio.sleep(LOOK_S)
            return
        try:
            await readable(watched, 60)
        finally:
            os.close(watched)

    async def kill(self, reason: str) -> None:
        """Kill what runs at once, and prevent what is about to start."""
        self._note(killed=reason or "killed")
        self._kill_ordered.set()
        with contextlib.suppress(OSError):
            await self._send_kill()

    def let_go(self) -> None:
        """Record that the cluster knows the run is over."""
        self._note(over=True)

    async def report_failure(self, message: str) -> None:
        """Report that this worker could not complete the run."""
        await self.kill(message)
        await self._report(None, message)

    async def _report(self, code: int | None, message: str, *, lost: bool = False) -> None:
        if self.order.killed == STOPPED and code in (None, KILLED):
            # Reported when the worker leaves or registers again; the run has not failed.
            return
        if message:
            await self._shipper.say(FAILURE, "ERROR", message)
        if self.order.assigned.kind == "COMMAND" and code is not None and not (lost or self.order.killed):
            # The last line that clients of commands wait for, in Determined's wording.
            await self._shipper.say(ENDING, *_ending(code))
        cause = "" if lost or self.order.killed else permanent.cause(self.folder, code)
        fact = AllocationExited(
            worker_id=self._worker,
            allocation_id=self.id,
            exit_code=code,
            message=message or cause,
            lost=lost,
            permanent=bool(cause),
        )
        await self._state(fact, "exited")
        self._note(reported=True)

    async def _state(self, event: object, what: str, trace: str = "") -> None:
        fact = draft(self._worker, event, trace=trace)
        while True:
            try:
                await self._journal.append(fact)
                return
            except TooLarge:
                raise
            except NotConfirmed as error:
                log.warning("fact.kept_back", what=what, allocation=self.id, error=str(error))


def _ending(code: int) -> tuple[str, str]:
    """Level and text of the last log line."""
    if code == 0:
        return "INFO", "resources exited successfully with a zero exit code"
    return "ERROR", f"task failed with exit code {code}"
