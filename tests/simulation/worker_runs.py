"""The runs of a simulated worker: from an assignment to the report of its end."""

import asyncio

import msgspec

from det_contracts import subjects
from det_contracts.events import worker
from det_contracts.reports import LogBatch, LogLine, log_id
from services.kit.log import Draft
from tests.simulation.script import Process
from tests.simulation.violation import Violation

KILLED = 137
STOPPED = "the worker is stopped"


class Order:
    """One assignment on disk."""

    def __init__(self, briefing, position):
        self.briefing = briefing
        self.assigned = briefing.assigned
        self.position = position
        self.started = False
        self.killed = ""
        self.over = False
        self.reported = False


class Run:
    """One assignment in the memory of a worker process."""

    def __init__(self, order):
        self.order = order
        self.id = order.assigned.allocation_id
        self.done = False

    @property
    def killed(self):
        return self.order.killed


class Runs:
    """What a host does for each assignment. Its processes outlive the process of its worker."""

    def _is_lost(self, run):
        """Whether its processes ended with their machine or worker, rather than by themselves."""
        process = self.processes.get(run.id)
        if run.order.reported:
            return False
        if run.killed == STOPPED:
            return process is None or process.code in (None, KILLED)
        return process is not None and process.ended.is_set() and process.code is None

    def _lacks_slots(self, order):
        mine = next(p for p in order.assigned.parts if p.worker_id == self.id)
        return any(slot >= self.slots for slot in mine.slots)

    def _kill_all_runs(self):
        for run in list(self._runs.values()):
            self._kill(run, "another one has its id")

    async def _accept_or_decline(self, standing):
        if standing.end or standing.briefing is None:
            lost = not standing.end and not standing.problem
            fact = worker.AllocationExited(
                worker_id=self.id, allocation_id=standing.allocation_id, message="given back", lost=lost
            )
            await self._state(fact)
            return
        order = self.orders[standing.allocation_id] = Order(standing.briefing, standing.position)
        self._spawn(self._execute(self._create_run(order)))

    def _create_run(self, order):
        run = self._runs[order.assigned.allocation_id] = Run(order)
        if self._lacks_slots(order) and not order.killed:
            order.killed = "it lost slots that it ran on"
        return run

    async def _execute(self, run):
        if not run.order.reported:
            code, message = await self._follow(run)
            process = self.processes.get(run.id)
            await self._report(run, code, message, lost=process is not None and process.fenced)
        run.done = True
        self._remove_if_over(run)

    async def _follow(self, run):
        process = self.processes.get(run.id)
        if process is None and not run.killed:
            # Orders that are read again after a restart may be obsolete: wait for the rest of the log.
            await self._orders_current.wait()
            if run.order.assigned.fence_s:
                await self._contact.wait_until_fresh()
            await asyncio.sleep(0.5 * self._world.chance.random())
            await self.awake.wait()
            if not run.killed:
                process = self._launch(run)
        if process is None:
            return None, f"ended before it was started: {run.killed}"
        run.order.started = True
        await self._state(worker.AllocationStarted(self.id, run.id))
        if run.killed:
            process.kill()
        await process.ended.wait()
        await self._ship(run)
        return (KILLED, "its shim is gone") if process.code is None else (process.code, "")

    async def _ship(self, run):
        """The script's output; repeated after a restart, since shipped lines are not recorded."""
        for offset in (0, 7):
            batch = LogBatch(
                task_id=run.order.assigned.task_id,
                allocation_id=run.id,
                worker_id=self.id,
                source="task",
                offset=offset,
                lines=[LogLine(self._world.clock(), "stdout", None, None, f"line {offset}")],
            )
            id = log_id(run.id, self.id, "task", offset)
            await self._send(Draft(subjects.logs(batch.task_id), msgspec.json.encode(batch), id))

    def _launch(self, run):
        mine = next(p for p in run.order.assigned.parts if p.worker_id == self.id)
        for other in self.processes.values():
            shared = set(other.slots) & set(mine.slots)
            if shared and not other.ended.is_set():
                raise Violation(
                    "no slot held twice",
                    f"{other.id} still runs on {shared} of {self.id}",
                    run.order.assigned,
                )
        process = Process(self._world, run.order.briefing, mine, self)
        self.processes[run.id] = process
        process.start()
        return process

    def check_alone(self, assigned):
        """With `on_lost: fence`, only one run of a trial has processes at any time, on any host."""
        for other in self._world.processes.values():
            same = assigned.trial_id is not None and other.assigned.trial_id == assigned.trial_id
            if same and other.id != assigned.allocation_id and other.assigned.fence_s:
                there = f"{other.id} still runs on {other.host.id}"
                raise Violation(
                    "one process per trial", f"{there}, {assigned.allocation_id} begins", assigned
                )

    async def _report(self, run, code, message, lost):
        if run.killed == STOPPED and code in (None, KILLED):
            # Reported when the worker leaves, or by its next registration: nothing failed here.
            return
        fact = worker.AllocationExited(
            worker_id=self.id, allocation_id=run.id, exit_code=code, message=message, lost=lost
        )
        await self._state(fact)
        run.order.reported = True

    def _kill(self, run, reason):
        # On disk: an order to kill that was read does not come again.
        run.order.killed = reason
        if run.id in self.processes:
            self.processes[run.id].kill()

    def _remove_if_over(self, run):
        if run.done and run.order.over:
            self._runs.pop(run.id, None)
            self.orders.pop(run.id, None)
            self.processes.pop(run.id, None)
