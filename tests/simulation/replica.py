"""One replica of a service: the real runner with the real rules, in a process that can die."""

from asyncio import TaskGroup, get_running_loop, sleep
from types import SimpleNamespace

from det_contracts.problems import unavailable
from det_contracts.script_queries import AskLeave, AskOperations
from services.kit.runner import Runner
from services.kit.script_requests import RecordWaiters
from services.kit.suspension import SuspensionDetector
from services.metrics import settling
from services.metrics.settings import MetricsSettings
from services.scheduler import heartbeats, orders
from services.scheduler.script_answers import leave_handler
from services.searcher.script_answers import operations_handler
from tests.simulation.fake_database import FakeSaver
from tests.simulation.line import Line
from tests.simulation.stopping import Process
from tests.simulation.violation import Violation


class Replica:
    """A process that starts, leads or follows, and dies."""

    def __init__(self, world, rules, number, shelf):
        self.name = f"{rules.owner}-{number}"
        self.rules = rules
        self.shelf = shelf
        self.leads = False
        self.ahead_s = 0.0
        self.runner = None
        self._world = world
        self._tasks = []
        self.process = Process()

    @property
    def up(self):
        return self.runner is not None

    @property
    def answers(self):
        """Whether it accepts commands."""
        return self.up and self.leads and self.runner.ready.is_set()

    def clock(self):
        return self._world.clock() + self.ahead_s

    def start(self):
        world = self._world
        self.process = Process()
        self.line = Line(world.disk, world.chance, world.plan_now, world.tell, self._on_closed)
        self.saver = self._new_saver()
        self.news = RecordWaiters(self.saver)
        self.runner = Runner(
            self.rules,
            self.line,
            self.saver,
            is_leader=lambda: self.leads,
            clock=self.clock,
            replica=self.name,
            measures=NO_METRICS,
            new_id=world.new_id,
            stopwatch=lambda: 0.0,
        )
        self._run(self.runner.run())
        self._run(self._fails_if_it_stands(self.runner.standstill))
        self._suspension = SuspensionDetector(get_running_loop().time)
        self._run(self._suspension.run())
        parts = SimpleNamespace(
            runner=self.runner,
            saver=self.saver,
            database=self.shelf,
            journal=self.line,
            is_leader=lambda: self.leads,
            settings=MetricsSettings(),
            connection=SimpleNamespace(subscribe=self._subscribe),
            stranger_connection=SimpleNamespace(subscribe=self._subscribe),
            measures=NO_METRICS,
        )
        self._run(self.run_background_tasks(parts))

    async def _fails_if_it_stands(self, standstill):
        while True:
            await standstill.stands.wait()
            if not self._world.poison.may_stand(self.rules.owner):
                raise AssertionError(f"it cannot process {standstill.failed}")
            while standstill.stands.is_set():
                await sleep(5.0)

    def _new_saver(self):
        rules = self.rules
        return FakeSaver(
            self.shelf, rules.owner, rules.state, lambda: self.leads, NO_METRICS, roots=rules.roots
        )

    async def run_background_tasks(self, parts):
        """Tasks beside the runner."""
        work = BACKGROUND_TASKS.get(self.rules.owner)
        if work is not None:
            await work(parts)

    def _on_closed(self, why):
        self._world.fail(Violation("nobody sends what the broker does not take", f"{self.name}: {why}"))

    async def rule(self, command, call, within_s):
        """Rule on a command sent to this process, like `bus.BusServer`."""
        if not self.up:
            raise unavailable(f"{self.name} is gone")
        if self._suspension.was_suspended():
            raise unavailable(f"{self.name} was stopped for a while")
        return await self.runner.command(command, call, within_s=within_s)

    async def _subscribe(self, subject, cb):
        self.on_beat = cb

    def on_heartbeat(self, worker_id, session):
        """A worker's heartbeat."""
        if self.up and not self.line.cut and hasattr(self, "on_beat"):
            heartbeat = SimpleNamespace(subject=f"heartbeat.{worker_id}", data=session.encode())
            self.process.run(self.on_beat(heartbeat))

    def tell(self, trial_id, ask):
        """A task that answers a script; it ends with the process."""
        say = SCRIPT_ANSWERS[type(ask)](self.runner, self.news)
        task = self.process.run(say(trial_id, ask))
        self._tasks.append(task)
        task.add_done_callback(lambda _: self._tasks.remove(task) if task in self._tasks else None)
        return task

    def _run(self, work):
        task = self.process.run(work)
        task.add_done_callback(self._on_task_done)
        self._tasks.append(task)

    def _on_task_done(self, task):
        if not task.cancelled() and task.exception() is not None:
            self._world.fail(Violation("services stay up", f"{self.name}: {why(task.exception())}"))

    def count_roots(self):
        """Record how many roots have come and gone."""
        if self.up and self.runner.pager is not None:
            counts = self._world.ledger.counts
            counts["roots let go"] = counts.get("roots let go", 0) + self.runner.pager.roots_evicted
            counts["roots brought"] = counts.get("roots brought", 0) + self.runner.pager.roots_loaded

    def lead(self, leads):
        self.leads = leads
        if self.up:
            self.runner.on_leadership_change()

    def crash(self):
        """Die at any point."""
        self.count_roots()
        for task in self._tasks:
            task.remove_done_callback(self._on_task_done)
            task.cancel()
        self.process.resume()
        self._tasks, self.runner = [], None

    end = crash


def why(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{error!r} after {error.__cause__!r}" if error.__cause__ else repr(error)


def _ignored(*_, **__):
    return None


class _NoMetrics:
    """Metrics that nobody reads."""

    def __getattr__(self, name):
        setattr(self, name, _ignored)
        return _ignored


NO_METRICS = _NoMetrics()


async def watch_workers(parts):
    """The scheduler's watch with its usual timeouts, and the orders that it writes for workers."""
    writer = orders.OrdersWriter(parts, _ignored_soon)
    async with TaskGroup() as tasks:
        tasks.create_task(writer.run())
        tasks.create_task(
            heartbeats.monitor_heartbeats(
                parts, heartbeats.RECONNECT_WAIT_S, writer.has_current_orders, writer.request_registration
            )
        )


async def _ignored_soon(_):
    return None


SCRIPT_ANSWERS = {AskOperations: operations_handler, AskLeave: leave_handler}
BACKGROUND_TASKS = {"scheduler": watch_workers, "metrics": settling.settle_ended_trials}
