"""Three workers of four slots: who yields to whom, gangs, drains, and what a lost host means."""

import contextlib
import json
import os
import signal
from collections import Counter

import pytest

from det_contracts.events import scheduler, searcher, worker
from tests.fixtures.local_cluster import LocalCluster, processes_below, wait_for
from tests.fixtures.reading import read_control

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]

RECONNECT_WAIT_S = 6
HOLD = 12
"""Batch at which every trial waits until its gate is open."""
BATCHES = 20

SCRIPT = f"""
import json, os, pathlib, time
import determined as det

info = det.get_cluster_info()
folder = pathlib.Path(os.environ["LAB"])
me, count = info.container_rank, len(info.container_addrs)
dist = det.core.DistributedContext(
    rank=me, size=count, local_rank=0, local_size=1, cross_rank=me, cross_size=count,
    chief_ip=info.container_addrs[0],
)
name = f"{{info.trial.trial_id}}.{{info.trial._trial_run_id}}.{{me}}"
told = [info.container_addrs, me, info.container_slot_counts, info.slot_ids, det.core._distributed.PORT_1]
(folder / f"told-{{name}}.new").write_text(json.dumps([*told, info.session_token]))
(folder / f"told-{{name}}.new").rename(folder / f"told-{{name}}")
record = open(folder / f"batches-{{info.trial.trial_id}}", "a", buffering=1)

def main(core):
    step = 0
    if info.latest_checkpoint:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            step = int((path / "step").read_text())
    for op in core.searcher.operations():
        while step < op.length:
            step += 1
            if me == 0:
                record.write(f"{{step}}\\n")
                core.train.report_training_metrics(steps_completed=step, metrics={{"x": step}})
            time.sleep(0.02)
            while True:
                if core.preempt.should_preempt():
                    if me == 0:
                        with core.checkpoint.store_path({{"steps_completed": step}}) as (path, uuid):
                            (path / "step").write_text(str(step))
                    dist.broadcast(None)
                    return
                if dist.broadcast(step != {HOLD} or (folder / os.environ["GATE"]).exists()):
                    break
                time.sleep(0.05)
        if me == 0:
            core.train.report_validation_metrics(steps_completed=step, metrics={{"x": step}})
            op.report_completed(step)

with det.core.init(distributed=dist) as core:
    main(core)
"""
CONFIG = """
name: {gate}
entrypoint: python3 train.py
searcher: {{name: random, metric: x, max_length: {batches}, max_trials: {trials}}}
resources: {{slots_per_trial: {slots}, priority: {priority}}}
environment: {{environment_variables: [LAB={folder}, GATE={gate}]}}
max_restarts: 0
"""
POOLS = """
resource_pools:
  - pool_name: default
    scheduler: {type: priority, preemption: true}
"""


class Lab:
    """A cluster, and trials that wait at a gate of their experiment until it is opened."""

    def __init__(self, folder):
        self.folder = folder / "lab"
        (folder / "model").mkdir(parents=True)
        self.folder.mkdir()
        (folder / "model" / "train.py").write_text(SCRIPT)
        (folder / "pools.yaml").write_text(POOLS)
        self.model = folder / "model"
        wait = {"STEADFAST_RECONNECT_WAIT_S": str(RECONNECT_WAIT_S)}
        pools_file = str(folder / "pools.yaml")
        self.cluster = LocalCluster(folder, agents=3, slots=4, pools_file=pools_file, settings=wait)

    def submit(self, gate, *, slots=1, trials=1, priority=42):
        """Start an experiment; returns the ids of its trials once all of them are there."""
        config = CONFIG.format(
            gate=gate, slots=slots, trials=trials, priority=priority, batches=BATCHES, folder=self.folder
        )
        (self.model / "config.yaml").write_text(config)
        id = self.cluster.create("config.yaml", self.model)
        wait_for(lambda: len(self.cluster.trials(id)) == trials, 30, f"the trials of {gate}")
        return id, [trial["id"] for trial in self.cluster.trials(id)]

    def open(self, gate):
        (self.folder / gate).touch()

    def batches(self, trial):
        path = self.folder / f"batches-{trial}"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def until_held(self, *trials, batch=HOLD):
        """Wait until trials stand at their gate."""
        for trial in trials:
            wait_for(lambda trial=trial: batch in self.batches(trial), 60, f"trial {trial} at batch {batch}")

    def told(self, trial, run, rank=0):
        """What a script learned of its allocation, as soon as it runs."""
        path = self.folder / f"told-{trial}.{run}.{rank}"
        wait_for(path.exists, 60, f"rank {rank} of run {run} of trial {trial}")
        return json.loads(path.read_text())

    def finished(self, experiment):
        """Wait for the end; all must have gone well, and no restart been counted."""
        assert self.cluster.wait_for_end(experiment)["state"] == "STATE_COMPLETED"
        assert {trial["restarts"] for trial in self.cluster.trials(experiment)} == {0}

    def events(self, kind, **fields):
        found = [e for e in read_control(self.cluster) if isinstance(e, kind)]
        return [e for e in found if all(getattr(e, name) == value for name, value in fields.items())]

    def places(self, trial):
        """The workers of each run of a trial, chief first."""
        return [
            [p.worker_id for p in e.parts] for e in self.events(scheduler.AllocationAssigned, trial_id=trial)
        ]

    def outcomes(self, trial):
        return [e.outcome for e in self.events(scheduler.AllocationEnded, trial_id=trial)]

    def runs(self, trial):
        return len(self.events(searcher.RunRequested, trial_id=trial))

    def used(self, worker_id):
        """How many slots of a worker hold something."""
        agent = self.cluster.get(f"agents/{worker_id}")["agent"]
        return sum(1 for slot in agent["slots"].values() if slot["container"])

    def processes(self, worker_id):
        """What runs on a worker, itself aside."""
        return processes_below(self.cluster.home.path / "workers" / worker_id / "runs")

    def here(self):
        return {agent["id"] for agent in self.cluster.get("agents")["agents"]}


@pytest.fixture
def lab(tmp_path):
    made = Lab(tmp_path)
    made.cluster.up()
    yield made
    made.cluster.down()
    # Those of a worker that was stopped live on.
    for pid in processes_below(tmp_path):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_an_important_job_preempts_another_which_loses_no_batch(lab):
    low, trials = lab.submit("low", slots=4, trials=3, priority=50)
    lab.until_held(*trials)
    high, (important,) = lab.submit("high", slots=8, priority=10)
    lab.open("high")
    lab.finished(high)
    assert lab.places(important) == [lab.places(important)[0]]
    preempted = [trial for trial in trials if lab.runs(trial) > 1]
    assert len(preempted) == 2
    lab.open("low")
    lab.finished(low)
    for trial in trials:
        assert lab.batches(trial) == list(range(1, BATCHES + 1))
        assert lab.outcomes(trial) == ["succeeded"] * (2 if trial in preempted else 1)
    asked = lab.events(scheduler.PreemptRequested)
    assert len(asked) == 2
    assert all(f"experiment {high} (priority 10)" in e.reason for e in asked)


def test_a_trial_of_eight_slots_spans_two_workers(lab):
    experiment, (trial,) = lab.submit("wide", slots=8)
    chief, second = lab.told(trial, 1, 0), lab.told(trial, 1, 1)
    assert chief[0] == second[0] == ["127.0.0.1"] * 2
    assert (chief[1], second[1]) == (0, 1)
    assert chief[2] == second[2] == [4, 4]
    assert chief[3] == second[3] == [0, 1, 2, 3]
    assert chief[4:] == second[4:]
    lab.open("wide")
    lab.finished(experiment)
    (place,) = lab.places(trial)
    assert len(set(place)) == 2
    assert lab.batches(trial) == list(range(1, BATCHES + 1))


def test_a_failed_part_ends_the_whole_gang(lab):
    (lab.model / "train.py").write_text(
        SCRIPT.replace("def main", "if me == 1:\n    raise SystemExit(7)\ndef main")
    )
    experiment, (trial,) = lab.submit("broken", slots=8)
    assert lab.cluster.wait_for_end(experiment)["state"] == "STATE_ERROR"
    (ended,) = lab.events(scheduler.AllocationEnded, trial_id=trial)
    assert (ended.outcome, ended.exit_code) == ("failed", 7)


def test_a_draining_worker_empties_and_gets_nothing_new(lab):
    first, (trial,) = lab.submit("first")
    lab.until_held(trial)
    ((place,),) = lab.places(trial)
    lab.cluster.api("POST", f"agents/{place}/disable", json={"drain": True})
    second, others = lab.submit("second", trials=8)
    lab.until_held(*others)
    assert all(place not in places for other in others for places in lab.places(other))
    assert lab.used(place) == 1
    lab.open("first")
    lab.finished(first)
    wait_for(lambda: lab.used(place) == 0, 20, "the worker to be empty")
    assert lab.runs(trial) == 1
    lab.cluster.api("POST", f"agents/{place}/enable")
    third, (last,) = lab.submit("third", slots=4)
    lab.until_held(last)
    assert lab.places(last) == [[place]]
    for gate in ("second", "third"):
        lab.open(gate)
    lab.finished(second)
    lab.finished(third)


def test_a_disabled_worker_has_its_work_killed_and_moved(lab):
    experiment, (trial,) = lab.submit("moved", slots=2)
    lab.until_held(trial)
    ((place,),) = lab.places(trial)
    lab.cluster.api("POST", f"agents/{place}/disable")
    lab.told(trial, 2)
    lab.open("moved")
    lab.finished(experiment)
    assert len(lab.places(trial)) == 2
    assert place not in lab.places(trial)[1]
    assert lab.outcomes(trial) == ["killed", "succeeded"]


def test_trials_of_a_lost_machine_move_and_count_no_restart(lab):
    wide, (gang,) = lab.submit("wide", slots=8)
    small, (single,) = lab.submit("small", slots=3)
    lab.until_held(gang, single)
    lost = lab.places(gang)[0][1]
    lab.cluster.api("POST", f"experiments/{small}/kill")
    lab.cluster.wait_for_end(small)
    lab.cluster.lose_machine(lost)
    lab.told(gang, 2)
    lab.open("wide")
    lab.finished(wide)
    assert lab.outcomes(gang) == ["worker_lost", "succeeded"]
    assert lost not in lab.places(gang)[1]
    lab.cluster.start(lost)
    wait_for(lambda: lab.here() == set(lab.cluster.workers()), 30, "the machine to be back")
    full, trials = lab.submit("full", slots=4, trials=3)
    lab.open("full")
    lab.finished(full)
    assert Counter(place for trial in trials for (place,) in lab.places(trial))[lost]


def test_a_machine_that_is_back_at_once_without_its_processes(lab):
    experiment, (trial,) = lab.submit("reboot", slots=4)
    lab.until_held(trial)
    ((place,),) = lab.places(trial)
    lab.cluster.lose_machine(place)
    lab.cluster.start(place)
    lab.told(trial, 2)
    lab.open("reboot")
    lab.finished(experiment)
    assert lab.outcomes(trial) == ["worker_lost", "succeeded"]


def test_work_of_a_worker_that_is_stopped_moves_and_counts_no_restart(lab):
    experiment, (trial,) = lab.submit("stopped", slots=2)
    lab.until_held(trial)
    ((place,),) = lab.places(trial)
    lab.cluster.stop(place, signal.SIGTERM)
    assert lab.processes(place) == []
    lab.told(trial, 2)
    lab.open("stopped")
    lab.finished(experiment)
    assert lab.outcomes(trial) == ["worker_lost", "succeeded"]
    assert lab.places(trial)[1] != [place]


def test_a_worker_that_is_back_in_time_goes_on_with_what_it_runs(lab):
    wide, (gang,) = lab.submit("wide", slots=8)
    small, (single,) = lab.submit("small", slots=2)
    lab.until_held(gang, single)
    for name in lab.cluster.workers():
        lab.cluster.stop(name)
        lab.cluster.start(name)
    wait_for(lambda: len(lab.events(worker.WorkerRegistered)) == 6, 30, "all workers to be back")
    for gate in ("wide", "small"):
        lab.open(gate)
    lab.finished(wide)
    lab.finished(small)
    assert (lab.runs(gang), lab.runs(single)) == (1, 1)
    assert lab.batches(gang) == lab.batches(single) == list(range(1, BATCHES + 1))


def test_a_worker_that_is_back_too_late_ends_what_is_no_longer_its_own(lab):
    experiment, (trial,) = lab.submit("late", slots=4)
    lab.until_held(trial)
    ((place,),) = lab.places(trial)
    old = lab.processes(place)
    assert old
    lab.cluster.stop(place)
    lab.told(trial, 2)
    assert set(old) <= set(lab.processes(place))
    lab.cluster.start(place)
    wait_for(lambda: not lab.processes(place), 30, "the old run to end")
    lab.open("late")
    lab.finished(experiment)
    assert lab.outcomes(trial) == ["worker_lost", "succeeded"]
    assert lab.here() == set(lab.cluster.workers())


def test_a_worker_that_is_back_with_fewer_slots_keeps_what_still_fits(lab):
    experiment, trials = lab.submit("shrunk", slots=2, trials=6)
    lab.until_held(*trials)
    place = lab.cluster.workers()[0]
    there = {
        p.slots: e.trial_id
        for e in lab.events(scheduler.AllocationAssigned)
        for p in e.parts
        if p.worker_id == place
    }
    kept, moved = there[0, 1], there[2, 3]
    lab.cluster.stop(place, signal.SIGKILL)
    lab.cluster.start(place, STEADFAST_WORKER_SLOTS="2")
    wait_for(lambda: lab.outcomes(moved) == ["worker_lost"], 30, "the trial on the lost slots to end")
    lab.open("shrunk")
    lab.finished(experiment)
    assert lab.runs(kept) == 1
    assert lab.runs(moved) == 2
