"""A script, as far as the SDK permits: operations, checkpoints, preemption; and all its bad manners."""

import asyncio

import msgspec

from det_contracts import codec, subjects
from det_contracts.events import trial
from det_contracts.reports import ReportBatch, Series, report_id
from det_contracts.script_queries import AskLeave, AskOperations
from services.kit.log import Draft, NotConfirmed, TooLarge
from tests.simulation.stopping import outside

BEHAVIOURS = {
    "good": 60,
    "crashes": 14,
    "invalid": 4,
    "invalid and hangs": 1,
    "quits": 4,
    "rude": 4,
    "stubborn": 5,
    "hangs": 1,
    "cannot store": 3,
    "fails after completion": 4,
    "fails after acknowledging": 4,
}
"""Weights of the scripts' behaviours."""
LATE_S = 4000.0


class Process:
    """What a worker starts: a script on the chief, a companion on other ranks, or a deletion."""

    def __init__(self, world, briefing, part, host):
        self.briefing = briefing
        self.assigned = briefing.assigned
        self.id = self.assigned.allocation_id
        self.slots = part.slots
        self.rank = part.rank
        self.host = host
        self.code = None
        self.ended = asyncio.Event()
        self.fenced = False
        """Ended by its shim because the host was out of touch."""
        self.world = world
        self._contact_at = host.contact_at
        self._key = self.id, self.host.instance
        self._task = self._shim = None

    def start(self):
        """Run the program; the shim of a host that is out of touch begins nothing."""
        if self.assigned.fence_s and self._is_out_of_touch():
            self._fence_off()
            return
        self.host.check_alone(self.assigned)
        kind = _PROGRAM_OF.get(self.assigned.kind) or ("companion" if self.rank else "chief")
        work = self.world.programs[kind](self)
        # The process and its shim outlive the worker's process.
        self._task = outside(self._run_program(work))
        if self.assigned.fence_s:
            self._shim = outside(self._watch_fence())
        self.world.processes[self._key] = self
        if self.rank == 0:
            self.world.chiefs[self.id] = self

    async def _run_program(self, work):
        try:
            code = await work.run()
        except Exception as error:
            self.world.fail(error)
            raise
        self._end(code)

    async def _watch_fence(self):
        """What the shim does while the host runs, independent of the worker's process."""
        while not self._is_out_of_touch():
            await asyncio.sleep(0.5)
        self._fence_off()

    def _is_out_of_touch(self):
        self._contact_at = max(self._contact_at, self.host.contact_at)
        return asyncio.get_running_loop().time() - self._contact_at > self.assigned.fence_s

    def _fence_off(self):
        self.fenced = True
        self.world.ledger.count("fenced")
        self.kill()

    def _end(self, code):
        if not self.ended.is_set():
            self.code = code
            self.ended.set()
            self.world.processes.pop(self._key, None)
            if self._shim is not None and not self.fenced:
                self._shim.cancel()

    def kill(self):
        """SIGKILL."""
        if self._task is not None:
            self._task.cancel()
        self._end(137)

    def vanish(self):
        """The host went down: no exit code was written."""
        if not self.ended.is_set():
            self._task.cancel()
            self._end(None)


class Deletion:
    """A task that deletes checkpoints."""

    def __init__(self, process):
        self._chance = process.world.plan.chance(process.id)

    async def run(self):
        await asyncio.sleep(self._chance.random())
        return 1 if self._chance.random() < 0.1 else 0


class OwnTask:
    """A user's command or TensorBoard: it ends by itself, well or badly, or is stopped."""

    def __init__(self, process):
        self._chance = process.world.plan.chance(process.id)
        self._kind = process.assigned.kind

    async def run(self):
        await asyncio.sleep(self._chance.expovariate(1 / 200 if self._kind == "TENSORBOARD" else 1 / 10))
        return 1 if self._chance.random() < 0.2 else 0


_PROGRAM_OF = {"CHECKPOINT_GC": "deletion", "COMMAND": "own", "TENSORBOARD": "own"}


class Companion:
    """Another rank: leaves with its chief, or is left hanging."""

    def __init__(self, process):
        self._process = process
        self._chance = process.world.plan.chance(f"{process.id}/{process.rank}")

    async def run(self):
        if "scripts" not in self._process.world.plan.off and self._chance.random() < 0.05:
            await asyncio.sleep(10 * self._chance.random())
            return 1
        chiefs = self._process.world.chiefs
        while self._process.id not in chiefs:
            await asyncio.sleep(2.0)
        chief = chiefs[self._process.id]
        await chief.ended.wait()
        await asyncio.sleep(self._chance.random())
        if chief.code == 0:
            return 0
        if self._chance.random() < 0.5:
            return 1
        await asyncio.Event().wait()


class Script:
    """The chief's script."""

    def __init__(self, process):
        self.process = process
        self.world = world = process.world
        self.line = process.host.line
        assigned = process.assigned
        self.allocation, self.trial, self.run_number = assigned.allocation_id, assigned.trial_id, assigned.run
        self.chance = world.plan.chance(self.allocation)
        self.manner = self._behaviour()
        self._op = (0, 0)
        self._idled = 0
        self._preempted = False
        self._moved = asyncio.Event()
        self._checkpoints = self._batches = self._facts = 0

    def _behaviour(self):
        if "scripts" in self.world.plan.off:
            return "good"
        manner = self.chance.choices(list(BEHAVIOURS), list(BEHAVIOURS.values()))[0]
        self.world.tell("script", f"{self.allocation} {manner}") if manner != "good" else None
        return manner

    # -- life

    async def run(self):
        await asyncio.sleep(self.chance.random())
        await self._brief()
        hearing = [
            asyncio.ensure_future(self._poll_operations()),
            asyncio.ensure_future(self._poll_preemption()),
        ]
        try:
            return await self._train(self.process.briefing.trial.steps_completed)
        finally:
            for task in hearing:
                task.cancel()

    async def _brief(self):
        """Scenarios read their briefing here, before anything else."""

    async def _poll_operations(self):
        newest = None
        while True:
            news = await self._news("searcher", AskOperations(self.run_number, newest))
            if news is not None and not news.over:
                newest = news
                self._op = max(self._op, (news.seq, news.length))
                self._idled = max(self._idled, news.idled)
                self._moved.set()

    async def _poll_preemption(self):
        newest = None
        while True:
            news = await self._news("scheduler", AskLeave(self.allocation, newest))
            if news is not None:
                newest = news
                self._preempted = self._preempted or news.leave
                self._moved.set()

    async def _news(self, owner, ask):
        while self.line.cut:
            await asyncio.sleep(1.0)
        return await self.world.news(owner, self.trial, ask)

    async def _until(self, true):
        while not true():
            self._moved.clear()
            await self._moved.wait()

    # -- training

    async def _train(self, steps):
        breaks_at = steps + self.chance.randrange(1, 9)
        while True:
            await self._until(lambda: self._op[0] > 0)
            seq, length = self._op
            if seq <= self._idled:
                await self._acknowledge()
                return 1 if self.manner == "fails after acknowledging" else 0
            while steps < length:
                await asyncio.sleep((0.3 + self.chance.random()) * self.world.plan.step_s)
                steps = min(length, steps + self._stride())
                code = await self._step(steps, steps >= breaks_at)
                if code is not None:
                    return code
            await self._report("validation", steps)
            await self._complete(seq, length)
            if self.manner == "fails after completion":
                return 1

    def _stride(self):
        return self.chance.randrange(1, 5)

    async def _step(self, steps, breaks):
        """One round of training; returns an exit code if it is the last one."""
        if breaks:
            code = await self._break(steps)
            if code is not None:
                return code
        if self.chance.random() < 0.3:
            await self._state_soon(trial.Progressed(self.trial, self.run_number, float(steps)))
        if self.chance.random() < 0.1:
            await self._report("training", steps)
        if self._preempted and self.manner != "stubborn":
            return await self._leave(steps)
        if self.chance.random() < 0.1:
            if self.manner == "cannot store":
                return 1
            await self._store(steps)
        return None

    async def _break(self, steps):
        if self.manner == "crashes":
            return self.chance.choice((1, 2, 139))
        if self.manner == "quits":
            return 0
        if self.manner.startswith("invalid"):
            event = trial.ExitedEarly(self.trial, self.run_number, "EXITED_REASON_INVALID_HP")
            await self._state(event, f"early-{self.trial}-{self.run_number}")
            if self.manner == "invalid and hangs":
                await asyncio.sleep(60)
            return self.chance.choice((0, 0, 1))
        return None

    async def _leave(self, steps):
        if self.manner == "hangs":
            await asyncio.sleep(LATE_S)
        if self.manner != "rude":
            await self._acknowledge()
        if self.manner == "fails after acknowledging":
            return 1
        await self._store(steps)
        return 0

    # -- facts

    async def _acknowledge(self):
        fact = trial.PreemptionAcknowledged(self.trial, self.run_number)
        await self._state(fact, f"ack-{self.trial}-{self.run_number}")

    async def _complete(self, seq, length):
        metric = self._metric(length)
        fact = trial.OperationCompleted(
            trial_id=self.trial, run=self.run_number, seq=seq, length=length, metric=metric
        )
        await self._state(fact, f"completed-{self.trial}-{self.run_number}-{seq}")
        await self._until(lambda: self._idled >= seq or self._op[0] > seq)

    def _metric(self, length):
        """Few distinct values, so that ties are common; sometimes none at all."""
        chance = self.world.plan.chance(f"{self.trial}/{length}")
        return "NaN" if chance.random() < 0.03 else float(chance.randrange(4))

    async def _store(self, steps):
        self._checkpoints += 1
        uuid = f"c-{self.allocation.replace('.', '-')[-40:]}-{self._checkpoints}"
        fact = trial.CheckpointStored(
            trial_id=self.trial,
            experiment_id=self.process.assigned.experiment_id,
            run=self.run_number,
            task_id=self.process.assigned.task_id,
            allocation_id=self.allocation,
            uuid=uuid,
            resources={"model": 1},
            metadata={"steps_completed": steps},
            steps_completed=steps,
        )
        await self._state(fact, f"checkpoint-{uuid}")

    async def _state_soon(self, event):
        self._facts += 1
        await self._state(event, f"fact-{self.allocation}-{self._facts}")

    async def _state(self, event, id):
        body = codec.encode(event, id=id, actor=f"trial:{self.trial}", at=self.world.clock())
        await self._send(Draft(subjects.witness_of_trial(self.trial), body, id))

    async def _send(self, draft):
        while True:
            try:
                await self.line.append(draft)
                return
            except TooLarge:
                raise
            except NotConfirmed:
                continue

    async def _report(self, group, steps):
        self._batches += 1
        series = Series(group, [steps], [self.world.clock()], {"loss": [self._metric(steps)]})
        batch = ReportBatch(
            trial_id=self.trial,
            experiment_id=self.process.assigned.experiment_id,
            run=self.run_number,
            number=self._batches,
            searcher_metric="loss",
            smaller_is_better=True,
            series=[series],
        )
        id = report_id(self.trial, self.run_number, self._batches)
        await self._send(Draft(subjects.reports(self.trial), msgspec.json.encode(batch), id))


PROGRAMS = {"deletion": Deletion, "own": OwnTask, "chief": Script, "companion": Companion}
"""What a process runs, by its role in the allocation."""
