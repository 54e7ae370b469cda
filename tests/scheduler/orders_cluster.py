"""A scheduler that writes orders for workers, on a log in memory."""

import asyncio
from types import SimpleNamespace

import msgspec

from det_contracts import codec, subjects
from det_contracts.events import searcher, worker
from det_contracts.orders import NO_ORDERS_YET, WorkerOrders
from services.kit.log import Draft
from services.kit.log_memory import MemoryLog
from services.kit.runner import Runner
from services.kit.saver import NullSaver
from services.scheduler import orders
from services.scheduler.app import RULES

CONFIG = {"name": "x", "resources": {"slots_per_trial": 1, "resource_pool": "default"}, "max_restarts": 0}

DEADLINE_S = 60


def run_requested(trial_id, **more):
    """The first run of a trial whose experiment has the same id, on one slot."""
    usual = {"allocation_id": f"{trial_id}.r.1", "run": 1, "slots": 1}
    return searcher.RunRequested(
        trial_id=trial_id,
        experiment_id=trial_id,
        task_id=f"{trial_id}.r",
        pool="default",
        priority=42,
        reason="",
        **usual | more,
    )


class Watched(NullSaver):
    """Tells of what was folded, as the saver of a real service does."""

    def __init__(self, state):
        super().__init__(state)
        self.listeners = []

    def watch(self, on_changed, on_reload):
        self.listeners.append((on_changed, on_reload))

    def on_reload(self):
        for _, on_reload in self.listeners:
            on_reload()

    async def changed(self, state, keys, events, positions, size=0):
        for on_changed, _ in self.listeners:
            on_changed(keys)


class Cluster:
    """A log, and any number of schedulers that read it."""

    def __init__(self):
        self.log = MemoryLog()
        self.made = []
        self.leader = 0
        self.writers = []
        self.runners = []
        self.parts = []
        self._tasks = []
        self._events = 0

    def schedulers(self, count=1):
        for number in range(count):
            saver = Watched(RULES.state)
            runner = Runner(RULES, self.log, saver, is_leader=lambda number=number: self.leader == number)
            parts = SimpleNamespace(
                runner=runner,
                journal=self.log,
                saver=saver,
                is_leader=lambda number=number: self.leader == number,
            )
            self.runners.append(runner)
            self.parts.append(parts)
            self.writers.append(orders.OrdersWriter(parts, self._make, "token of {}".format))
            self.begin(runner.run())
            self.begin(self.writers[-1].run())

    def begin(self, work):
        """Let it run until the end."""
        self._tasks.append(asyncio.create_task(work))

    async def _make(self, worker_id):
        self.made.append(worker_id)

    async def say(self, *events, at=None):
        """Events of long ago, or of a given time."""
        for event in events:
            self._events += 1
            body = codec.encode(event, id=f"e{self._events}", actor="test", at=at or float(self._events))
            await self.log.append(Draft(codec.subject_of(event), body, f"e{self._events}"))

    async def register(
        self, worker_id="w", slots=2, session="s1", running=(), reads_after=NO_ORDERS_YET, instance="i"
    ):
        offered = tuple(worker.Slot(n, "cpu", f"cpu-{n}", "CPU") for n in range(slots))
        await self.say(
            worker.WorkerRegistered(
                worker_id=worker_id,
                instance=instance,
                session=session,
                pool="default",
                address=f"at-{worker_id}",
                version="1",
                slots=offered,
                reads_after=reads_after,
                running=tuple(running),
            )
        )

    async def request(self, trial_id, slots=1, config=CONFIG):
        await self.say(
            searcher.ExperimentCreated(
                experiment_id=trial_id, user="ann", config=config, original_config="", reason=""
            ),
            searcher.TrialCreated(
                trial_id=trial_id,
                experiment_id=trial_id,
                request_id="r",
                task_id=f"{trial_id}.r",
                seed=7,
                hparams={"lr": 0.1},
                reason="",
            ),
            run_requested(trial_id, slots=slots, checkpoint="c", steps_completed=3),
        )

    def messages(self, worker_id="w"):
        messages = [m for m in self.log.streams[subjects.ORDERS] if m.subject == subjects.orders(worker_id)]
        return [msgspec.json.decode(m.body, type=WorkerOrders) for m in messages]

    async def orders_when(self, true, worker_id="w"):
        """The newest orders, as soon as they are as wanted."""
        await self.until(lambda: (messages := self.messages(worker_id)) and true(messages[-1]))
        return self.messages(worker_id)[-1]

    async def until(self, true):
        """Return as soon as that holds."""
        async with asyncio.timeout(DEADLINE_S):
            while not true():
                for task in self._tasks:
                    assert not task.done(), task.exception()
                await asyncio.sleep(0.005)

    async def end(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
