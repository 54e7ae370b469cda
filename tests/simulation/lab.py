"""A lab in virtual time: a cluster without random faults, on which a test plays its scenario.

It has the interface of `tests/fixtures/lab.py`, which uses real processes. All checks of the simulation at
every event apply here, too; `rest` runs the checks at the end.
"""

from contextlib import ExitStack

from msgspec.structs import replace

from det_contracts.commands import ChangeExperiment, ConfigurePools, CreateExperiment, SwitchWorker
from det_contracts.events import searcher
from det_contracts.events.scheduler import PoolSettings
from det_contracts.expconf import complete
from det_contracts.states import OVER
from tests.simulation import story
from tests.simulation.faults import repair_all
from tests.simulation.gated_scripts import BATCHES, HOLD, Gates
from tests.simulation.loop import virtual_loop
from tests.simulation.plan import KINDS, plan_of
from tests.simulation.scenario_queries import ScenarioQueries
from tests.simulation.simulate import ask_at_the_end, come_to_rest
from tests.simulation.violation import Violation
from tests.simulation.virtual_time import virtual_time
from tests.simulation.worker import Worker
from tests.simulation.world import World

PATIENCE_S = 300.0
POLL_EVERY_S = 0.1
POOLS = {"default": PoolSettings(scheduler="priority", preemption=True), "other": PoolSettings()}


class Lab(ScenarioQueries):
    """Equal workers, and trials that wait at their experiment's gate until it is opened.

    A seed decides how fast messages and scripts are, and whether services have second replicas; nothing
    breaks unless the test breaks it. Pools are assigned to the workers in turn.
    """

    def __init__(self, seed, agents=3, slots=4, pools=("default",), fence_after_s=None):
        """`fence_after_s`: hosts of the pool `default` end runs that are out of touch for that long."""
        super().__init__(Gates())
        self._fence_after_s = fence_after_s
        self._open = ExitStack()
        self._loop = self._open.enter_context(virtual_loop())
        plan = plan_of(seed, off=KINDS)
        self._open.enter_context(virtual_time(self._loop.time, plan))
        self._run(self._begin(plan, agents, slots, pools))

    async def _begin(self, plan, agents, slots, pools):
        self.world = World(plan)
        self.world.programs = self.world.programs | self._gates.programs()
        self.world.start_services()
        pools_there = POOLS
        if self._fence_after_s is not None:
            fenced = replace(POOLS["default"], on_lost="fence", fence_after_s=self._fence_after_s)
            pools_there = POOLS | {"default": fenced}
        await self.world.ask("scheduler", ConfigurePools(pools=pools_there))
        for number in range(agents):
            worker = Worker(self.world, f"w{number}", slots, pools[number % len(pools)])
            worker.address = f"10.0.0.{number + 1}"
            self.world.join(worker)
        await self._until(lambda: len(self.here()) == agents, "all workers to be here")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._open.close()

    def _run(self, work):
        try:
            return self._loop.run_until_complete(work)
        except Violation as violation:
            raise AssertionError(self._describe_failure(violation)) from violation

    def _describe_failure(self, failure):
        return story.tell(self.world, failure, "pytest tests/simulation/test_scenarios.py")

    def _call_in_loop(self, act, *words):
        """Run a synchronous function in the loop."""

        async def do():
            act(*words)

        self._run(do())

    def rest(self):
        """Open all gates, restart what is stopped, let everything end, and run the checks at the end."""
        self._gates.open.update(e.config["name"] for e in self.events(searcher.ExperimentCreated))
        self._run(self._rest())

    async def _rest(self):
        for worker in self.world.workers.values():
            worker.awake.set()
        repair_all(self.world)
        await come_to_rest(self.world)
        await ask_at_the_end(self.world)

    # -- waiting for facts

    def until(self, fact, what):
        """Let time pass until a fact holds; fails with the story of the run if it does not."""
        self._run(self._until(fact, what))

    async def _until(self, fact, what):
        deadline = self._loop.time() + PATIENCE_S
        while not fact():
            assert self._loop.time() < deadline, self._describe_failure(f"waited in vain for {what}")
            await self.world.sleep(POLL_EVERY_S)

    def wait(self, seconds):
        """Let virtual time pass."""
        self._run(self.world.sleep(seconds))

    def wait_for_end(self, experiment):
        """The final state of an experiment, once it has ended."""
        experiment_record = self.world.ledger.experiments[experiment]
        self.until(lambda: experiment_record.state.now in OVER, f"experiment {experiment} to end")
        return experiment_record.state.now

    def finished(self, *experiments):
        """Wait for the end; all trials must have succeeded without a restart."""
        for id in experiments:
            assert self.wait_for_end(id) == "COMPLETED"
            assert {self.restarts(trial) for trial in self.trials(id)} == {0}

    # -- what people do

    def submit(self, gate, *, slots=1, trials=1, priority=42, pool="default"):
        """Start an experiment; returns its id and those of its trials once they all exist."""
        searching = {"name": "random", "metric": "loss", "max_length": BATCHES, "max_trials": trials}
        written = {
            "entrypoint": "python3 train.py",
            "searcher": searching,
            "resources": {"slots_per_trial": slots, "priority": priority, "resource_pool": pool},
            "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"},
            "max_restarts": 0,
        }
        config = complete(written, seed=self.world.plan.seed, name=gate)
        command = CreateExperiment(
            user="ann", config=config, original_config="", activate=True, request_key=gate
        )
        id = self._ask("searcher", command)
        self.until(lambda: len(self.trials(id)) == trials, f"the trials of {gate}")
        return id, self.trials(id)

    def _ask(self, owner, command):
        _, value = self._run(self.world.ask(owner, command))
        return value

    def kill(self, experiment):
        """Kill an experiment, and wait for its end."""
        self._ask("searcher", ChangeExperiment(experiment_id=experiment, action="kill", user="ann"))
        assert self.wait_for_end(experiment) == "CANCELED"

    def disable(self, worker_id, drain=False):
        """Disable a worker; its runs are killed unless `drain` is set."""
        command = SwitchWorker(worker_id=worker_id, enabled=False, drain=drain, user="admin")
        self._ask("scheduler", command)

    def enable(self, worker_id):
        self._ask("scheduler", SwitchWorker(worker_id=worker_id, enabled=True, user="admin"))

    # -- what scripts do

    def open(self, gate):
        """Let the trials of an experiment continue."""
        self._gates.open.add(gate)

    def fail(self, gate, rank, code):
        """From now on, in experiments of this name, the script of this rank exits as soon as it starts."""
        self._gates.failing[gate, rank] = code

    def until_held(self, *trials):
        """Wait until trials stand at their gate."""
        for trial in trials:
            self.until(lambda trial=trial: HOLD in self.batches(trial), f"trial {trial} at batch {HOLD}")

    def script_info(self, trial, run, rank=0):
        """The briefing of a script and the ids of its slots, as soon as it runs."""
        key = trial, run, rank
        self.until(lambda: key in self._gates.orders, f"rank {rank} of run {run} of trial {trial}")
        return self._gates.orders[key]

    # -- what breaks

    def stop(self, worker_id):
        """The worker's process dies; its runs live on."""
        self._call_in_loop(self._worker(worker_id).kill)

    def start(self, worker_id, slots=None):
        """Restart a stopped worker, perhaps with other slots."""
        worker = self._worker(worker_id)
        worker.slots = worker.slots if slots is None else slots
        self._call_in_loop(worker.start)

    def change_slots(self, worker_id, slots):
        """A worker detects different slots, and reports them as soon as it can."""
        worker = self._worker(worker_id)
        self._call_in_loop(worker.process.run, worker.change_slots(slots))

    def leave(self, worker_id):
        """Stop a worker on purpose, as by SIGTERM: it ends its runs."""
        worker = self._worker(worker_id)
        self._run(worker.do(worker.leave()))

    def lose_machine(self, worker_id):
        """A worker is lost with all its runs, as when its machine loses power."""
        self._call_in_loop(self._worker(worker_id).reboot)

    def stop_broker(self):
        """The broker is away: nobody reaches it, heartbeats get lost, scripts go on."""
        for line in self._lines():
            line.cut = True

    def start_broker(self):
        for line in self._lines():
            line.cut = False

    def _lines(self):
        there = [*self.world.replicas, *self.world.workers.values()]
        return [participant.line for participant in there if participant.up]

    def cut_off(self, worker_id):
        """A worker and its scripts cannot reach the broker; everything else works."""
        self._worker(worker_id).line.cut = True

    def reconnect(self, worker_id):
        self._worker(worker_id).line.cut = False

    def freeze(self, owner):
        """Stop the processes of a service (SIGSTOP): messages to them wait."""
        for replica in self.world.of(owner):
            replica.process.stop()

    def thaw(self, owner):
        for replica in self.world.of(owner):
            self._call_in_loop(replica.process.resume)

    def twin(self, worker_id):
        """Start another worker with the same id, on another host; returns it."""
        worker = self._worker(worker_id)
        second = Worker(self.world, worker.id, worker.slots, worker.pool)
        self._call_in_loop(second.start)
        return second

    def hang(self, worker_id):
        """The worker's process does nothing until `wake`; its runs live on."""
        self._worker(worker_id).awake.clear()

    def wake(self, worker_id):
        self._call_in_loop(self._worker(worker_id).awake.set)

    def kill_as_space_runs_out(self, experiment):
        """From the moment the experiment is being killed, the log has no space for anything."""
        self._run(self._kill_as_space_runs_out(experiment))

    async def _kill_as_space_runs_out(self, experiment):
        command = ChangeExperiment(experiment_id=experiment, action="kill", user="ann")
        asking = self._loop.create_task(self.world.ask("searcher", command))
        while self.state(experiment) != "STOPPING_KILLED":
            await self.world.next_stored()
        self.world.disk.refuses = "no space"
        await asking

    def make_space(self):
        self.world.disk.refuses = ""

    def state(self, experiment):
        return self.world.ledger.experiments[experiment].state.now

    def _worker(self, worker_id):
        return self.world.workers[worker_id]
