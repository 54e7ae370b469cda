"""Three real workers of four slots: who yields to whom, gangs, drains, and what a lost host means.

The rules behind these are tried by the same scenarios in virtual time, in
`tests/simulation/test_scenarios.py`. Here they are played before a release with everything real between them:
broker, services, workers, shims and scripts. Two more, which say most about real processes, are in
`tests/live/test_cluster.py`.
"""

import os
import signal
from collections import Counter

import pytest

from det_contracts.events import scheduler, worker
from tests.fixtures.lab import BATCHES, GIVEN_UP_SOON, SCRIPT
from tests.fixtures.lab import lab as lab
from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(900)


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
    requests = lab.events(scheduler.PreemptRequested)
    assert len(requests) == 2
    assert all(f"experiment {high} (priority 10)" in e.reason for e in requests)


def test_a_failed_part_ends_the_whole_gang(lab):
    (lab.model / "train.py").write_text(
        # The other one knows nothing of it: it is ended because its part has failed.
        SCRIPT.replace("def main", "if me == 1:\n    raise SystemExit(7)\ntime.sleep(600)\ndef main")
    )
    experiment, (trial,) = lab.submit("broken", slots=8)
    assert lab.cluster.wait_for_end(experiment)["state"] == "STATE_ERROR"
    (ended,) = lab.events(scheduler.AllocationEnded, trial_id=trial)
    assert (ended.outcome, ended.exit_code) == ("failed", 7)


@pytest.mark.parametrize("lab", [{"agents": 2, "slots": 2, "pools": ["default", "other"]}], indirect=True)
def test_each_pool_runs_its_own(lab):
    usual, trials = lab.submit("usual", trials=3)
    other, (elsewhere,) = lab.submit("other", slots=2, pool="other")
    lab.until_held(elsewhere)
    wait_for(lambda: sum(bool(lab.batches(trial)) for trial in trials) == 2, 60, "two trials to run")
    here, there = lab.cluster.workers()
    assert lab.places(elsewhere) == [[there]]
    for gate in ("usual", "other"):
        lab.open(gate)
    lab.finished(usual)
    lab.finished(other)
    assert [lab.places(trial) for trial in trials] == [[[here]]] * 3


def test_a_draining_worker_empties_and_gets_nothing_new(lab):
    first, (trial,) = lab.submit("first")
    lab.until_held(trial)
    ((place,),) = lab.places(trial)
    lab.cluster.api("POST", f"agents/{place}/disable", user="admin", json={"drain": True})
    second, others = lab.submit("second", trials=8)
    lab.until_held(*others)
    assert all(place not in places for other in others for places in lab.places(other))
    assert lab.used(place) == 1
    lab.open("first")
    lab.finished(first)
    wait_for(lambda: lab.used(place) == 0, 60, "the worker to be empty")
    assert lab.runs(trial) == 1
    lab.cluster.api("POST", f"agents/{place}/enable", user="admin")
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
    lab.cluster.api("POST", f"agents/{place}/disable", user="admin")
    lab.script_info(trial, 2)
    lab.open("moved")
    lab.finished(experiment)
    assert len(lab.places(trial)) == 2
    assert place not in lab.places(trial)[1]
    assert lab.outcomes(trial) == ["killed", "succeeded"]


@pytest.mark.parametrize("lab", [GIVEN_UP_SOON], indirect=True)
def test_trials_of_a_lost_machine_move_and_count_no_restart(lab):
    wide, (gang,) = lab.submit("wide", slots=8)
    small, (single,) = lab.submit("small", slots=3)
    lab.until_held(gang, single)
    lost = lab.places(gang)[0][1]
    lab.cluster.api("POST", f"experiments/{small}/kill")
    lab.cluster.wait_for_end(small)
    lab.cluster.lose_machine(lost)
    lab.script_info(gang, 2)
    lab.open("wide")
    lab.finished(wide)
    assert lab.outcomes(gang) == ["worker_lost", "succeeded"]
    assert lost not in lab.places(gang)[1]
    lab.cluster.start(lost)
    wait_for(lambda: lab.here() == set(lab.cluster.workers()), 60, "the machine to be back")
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
    lab.script_info(trial, 2)
    lab.open("reboot")
    lab.finished(experiment)
    assert lab.outcomes(trial) == ["worker_lost", "succeeded"]


def test_work_of_a_worker_that_is_stopped_moves_and_counts_no_restart(lab):
    experiment, (trial,) = lab.submit("stopped", slots=2)
    lab.until_held(trial)
    ((place,),) = lab.places(trial)
    lab.cluster.stop(place, signal.SIGTERM)
    wait_for(lambda: not lab.processes(place), 60, "what it ran to be gone")
    lab.script_info(trial, 2)
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
    wait_for(lambda: len(lab.events(worker.WorkerRegistered)) == 6, 60, "all workers to be back")
    for gate in ("wide", "small"):
        lab.open(gate)
    lab.finished(wide)
    lab.finished(small)
    assert (lab.runs(gang), lab.runs(single)) == (1, 1)
    assert lab.batches(gang) == lab.batches(single) == list(range(1, BATCHES + 1))


@pytest.mark.parametrize("lab", [GIVEN_UP_SOON], indirect=True)
def test_a_worker_that_is_back_too_late_ends_what_is_no_longer_its_own(lab):
    experiment, (trial,) = lab.submit("late", slots=4)
    lab.until_held(trial)
    ((place,),) = lab.places(trial)
    old = lab.processes(place)
    assert old
    lab.cluster.stop(place)
    lab.script_info(trial, 2)
    assert set(old) <= set(lab.processes(place))
    lab.cluster.start(place)
    wait_for(lambda: not lab.processes(place), 60, "the old run to end")
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
    staying, moved = there[0, 1], there[2, 3]
    lab.cluster.stop(place, signal.SIGKILL)
    lab.cluster.start(place, STEADFAST_WORKER_SLOTS="2")
    wait_for(lambda: lab.outcomes(moved) == ["worker_lost"], 60, "the trial on the lost slots to end")
    lab.open("shrunk")
    lab.finished(experiment)
    assert lab.runs(staying) == 1
    assert lab.runs(moved) == 2


FENCED = GIVEN_UP_SOON | {"fence_after_s": 10}


@pytest.mark.parametrize("lab", [FENCED], indirect=True)
def test_a_host_ends_what_is_out_of_touch_before_it_starts_elsewhere(lab):
    experiment, (trial,) = lab.submit("fenced", slots=4)
    lab.until_held(trial)
    ((hung,),) = lab.places(trial)
    pid = lab.cluster.pid(hung)
    os.kill(pid, signal.SIGSTOP)
    try:
        # Its worker does nothing, its script trains: only its shim is left to end it.
        wait_for(lambda: not lab.processes(hung) or lab.runs(trial) > 1, 60, "its host to end it")
        assert lab.runs(trial) == 1
        lab.script_info(trial, 2)
        assert not lab.processes(hung)
    finally:
        os.kill(pid, signal.SIGCONT)
    (given_up,) = lab.events(scheduler.GivenUp)
    assert given_up.worker_id == hung
    lab.open("fenced")
    lab.finished(experiment)
    assert lab.outcomes(trial) == ["worker_lost", "succeeded"]
    wait_for(lambda: lab.here() == set(lab.cluster.workers()), 60, "the worker to be back")
