"""The scheduler's rules at work, driven by messages alone."""

import pytest

from det_contracts.commands import ConfigurePools
from det_contracts.events import searcher, worker
from det_contracts.events.scheduler import PoolSettings, Provider
from services.kit.testing import Fold
from services.scheduler.app import RULES
from tests.scheduler.growing import IDLE_S, NOTICE_S, START_S


class Scheduling:
    """A cluster of workers, and trials that ask for slots."""

    def __init__(self):
        self.fold = Fold(RULES)
        self.position = 0

    @property
    def state(self):
        return self.fold.state

    def decisions_after(self, *events):
        self.fold.apply(*events)
        return self.fold.decide()

    def pool(self, name="default", **settings):
        self.fold.rule(ConfigurePools(pools={name: PoolSettings(**settings)}))
        return self.fold.decide()

    def job(self, id=1, pool="", **resources):
        config = {"resources": {"resource_pool": pool, **resources}}
        self.fold.now += 1
        return self.decisions_after(
            searcher.ExperimentCreated(
                experiment_id=id, user="ann", config=config, original_config="", reason="test"
            )
        )

    def rule(self, command):
        self.fold.rule(command)
        return self.fold.decide()

    def worker(self, id="w1", slots=2, session="s1", running=(), reads_after=0, pool="default", instance=""):
        numbers = range(slots) if isinstance(slots, int) else slots
        offered = tuple(worker.Slot(n, "cpu", f"cpu-{n}", "CPU") for n in numbers)
        return self.decisions_after(
            worker.WorkerRegistered(
                worker_id=id,
                instance=instance,
                session=session,
                pool=pool,
                address="127.0.0.1",
                version="1",
                slots=offered,
                reads_after=reads_after,
                running=tuple(running),
            )
        )

    def request(self, trial_id, slots=1, run=1, experiment=1):
        """Trial ids are ids of tasks too, whatever the experiment."""
        task = f"1.t{trial_id}"
        return self.decisions_after(
            searcher.RunRequested(
                trial_id=trial_id,
                experiment_id=experiment,
                task_id=task,
                allocation_id=f"{task}.{run}",
                run=run,
                slots=slots,
                pool="default",
                priority=42,
                reason="test",
            )
        )

    def started(self, trial_id, worker_id="w1"):
        return self.decisions_after(worker.AllocationStarted(worker_id, f"1.t{trial_id}.1"))

    def exited(self, trial_id, code=0, message="", worker_id="w1"):
        return self.decisions_after(
            worker.AllocationExited(
                worker_id=worker_id, allocation_id=f"1.t{trial_id}.1", exit_code=code, message=message
            )
        )

    def stop(self, trial_id, kill=False):
        return self.decisions_after(
            searcher.StopRequested(
                trial_id=trial_id, allocation_id=f"1.t{trial_id}.1", kill=kill, reason="paused by ann"
            )
        )


@pytest.fixture
def cluster():
    return Scheduling()


@pytest.fixture
def grow(cluster):
    """Makes `default` a pool that grows; returns the cluster."""

    def make(**settings):
        usual = {
            "type": "process",
            "slots_per_instance": 2,
            "max_instances": 3,
            "max_idle_s": IDLE_S,
            "max_starting_s": START_S,
            "notice_s": NOTICE_S,
        }
        cluster.pool("default", provider=Provider(**usual | settings))
        cluster.job(1)
        return cluster

    return make
