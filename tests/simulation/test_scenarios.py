"""Preemption, gangs, pools, drains, and lost hosts: scenarios in virtual time.

Each is played with the real rules and checked by all invariants of the simulation, at several speeds of
messages and scripts. The same scenarios run with real processes: two of them in `tests/live/test_cluster.py`,
the others in `tests/full/test_cluster.py`.
"""

from collections import Counter

import pytest

from det_contracts.events import scheduler, worker
from services.scheduler.heartbeats import RECONNECT_WAIT_S
from tests.fixtures.tiers import rest_in_full
from tests.simulation.gated_scripts import BATCHES
from tests.simulation.lab import Lab
from tests.simulation.worker import HEARTBEAT_S

ALL = list(range(1, BATCHES + 1))
BACK_IN_TIME_S = RECONNECT_WAIT_S - HEARTBEAT_S - 2
"""The last heartbeat may be as old as the interval between two."""


@pytest.fixture(params=rest_in_full(range(3)))
def seed(request):
    return request.param


@pytest.fixture
def lab(seed, request):
    with Lab(seed, **getattr(request, "param", {})) as made:
        yield made
        made.rest()


def test_an_important_job_preempts_another_which_loses_no_batch(lab):
    low, trials = lab.submit("low", slots=4, trials=3, priority=50)
    lab.until_held(*trials)
    high, (important,) = lab.submit("high", slots=8, priority=10)
    lab.open("high")
    lab.finished(high)
    assert len(lab.places(important)) == 1
    preempted = [trial for trial in trials if lab.runs(trial) > 1]
    assert len(preempted) == 2
    lab.open("low")
    lab.finished(low)
    for trial in trials:
        assert lab.batches(trial) == ALL
        assert lab.outcomes(trial) == ["succeeded"] * (2 if trial in preempted else 1)
    requests = lab.events(scheduler.PreemptRequested)
    assert len(requests) == 2
    assert all(f"experiment {high} (priority 10)" in e.reason for e in requests)


def test_a_trial_of_eight_slots_spans_two_workers(lab):
    experiment, (trial,) = lab.submit("wide", slots=8)
    (chief, its_slots), (second, other_slots) = lab.script_info(trial, 1, 0), lab.script_info(trial, 1, 1)
    (place,) = lab.places(trial)
    addresses = tuple(lab.world.workers[name].address for name in place)
    assert len(set(addresses)) == 2
    assert chief.gang.addresses == second.gang.addresses == addresses
    assert (chief.gang.rank, second.gang.rank) == (0, 1)
    assert chief.gang.slot_counts == second.gang.slot_counts == (4, 4)
    assert its_slots == other_slots == (0, 1, 2, 3)
    assert chief.task.allocation_id == second.task.allocation_id
    lab.open("wide")
    lab.finished(experiment)
    assert lab.places(trial) == [place]
    assert lab.batches(trial) == ALL


def test_a_failed_part_ends_the_whole_gang(lab):
    # The other rank waits at its gate, unaware: it is ended because its peer has failed.
    lab.fail("broken", rank=1, code=7)
    experiment, (trial,) = lab.submit("broken", slots=8)
    assert lab.wait_for_end(experiment) == "ERROR"
    (ended,) = lab.events(scheduler.AllocationEnded, trial_id=trial)
    assert (ended.outcome, ended.exit_code) == ("failed", 7)
    assert not any(lab.processes(name) for name in lab.workers())


@pytest.mark.parametrize("lab", [{"agents": 2, "slots": 2, "pools": ("default", "other")}], indirect=True)
def test_each_pool_runs_its_own(lab):
    usual, trials = lab.submit("usual", trials=3)
    other, (elsewhere,) = lab.submit("other", slots=2, pool="other")
    lab.until_held(elsewhere)
    lab.until(lambda: sum(bool(lab.batches(trial)) for trial in trials) == 2, "two trials to run")
    here, there = lab.workers()
    assert lab.places(elsewhere) == [[there]]
    for gate in ("usual", "other"):
        lab.open(gate)
    lab.finished(usual, other)
    assert [lab.places(trial) for trial in trials] == [[[here]]] * 3


def test_a_draining_worker_empties_and_gets_nothing_new(lab):
    first, (trial,) = lab.submit("first")
    lab.until_held(trial)
    ((place,),) = lab.places(trial)
    lab.disable(place, drain=True)
    second, others = lab.submit("second", trials=8)
    lab.until_held(*others)
    assert all(place not in places for other in others for places in lab.places(other))
    assert lab.used(place) == 1
    lab.open("first")
    lab.finished(first)
    lab.until(lambda: lab.used(place) == 0, "the worker to be empty")
    assert lab.runs(trial) == 1
    lab.enable(place)
    third, (last,) = lab.submit("third", slots=4)
    lab.until_held(last)
    assert lab.places(last) == [[place]]
    for gate in ("second", "third"):
        lab.open(gate)
    lab.finished(second, third)


@pytest.mark.parametrize("lab", [{"agents": 2, "slots": 1, "pools": ("other",)}], indirect=True)
def test_beside_a_draining_worker_others_start_at_once_though_shares_are_fair(lab):
    first, (trial,) = lab.submit("first", pool="other")
    lab.until_held(trial)
    ((place,),) = lab.places(trial)
    lab.disable(place, drain=True)
    second, (other,) = lab.submit("second", pool="other")
    lab.until_held(other)
    assert lab.places(other) != [[place]]
    assert lab.used(place) == 1
    for gate in ("first", "second"):
        lab.open(gate)
    lab.finished(first, second)


def test_a_disabled_worker_has_its_work_killed_and_moved(lab):
    experiment, (trial,) = lab.submit("moved", slots=2)
    lab.until_held(trial)
    ((place,),) = lab.places(trial)
    lab.disable(place)
    lab.script_info(trial, 2)
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
    lab.kill(small)
    lab.lose_machine(lost)
    lab.script_info(gang, 2)
    lab.open("wide")
    lab.finished(wide)
    assert lab.outcomes(gang) == ["worker_lost", "succeeded"]
    assert lost not in lab.places(gang)[1]
    lab.start(lost)
    lab.until(lambda: lab.here() == set(lab.workers()), "the machine to be back")
    full, trials = lab.submit("full", slots=4, trials=3)
    lab.open("full")
    lab.finished(full)
    assert Counter(place for trial in trials for (place,) in lab.places(trial))[lost]


def test_a_machine_that_is_back_at_once_without_its_processes(lab):
    experiment, (trial,) = lab.submit("reboot", slots=4)
    lab.until_held(trial)
    ((place,),) = lab.places(trial)
    lab.lose_machine(place)
    lab.start(place)
    lab.script_info(trial, 2)
    lab.open("reboot")
    lab.finished(experiment)
    assert lab.outcomes(trial) == ["worker_lost", "succeeded"]
    assert not lab.events(scheduler.WorkerLost)


def test_work_of_a_worker_that_is_stopped_moves_and_counts_no_restart(lab):
    experiment, (trial,) = lab.submit("stopped", slots=2)
    lab.until_held(trial)
    ((place,),) = lab.places(trial)
    lab.leave(place)
    assert not lab.processes(place)
    lab.script_info(trial, 2)
    lab.open("stopped")
    lab.finished(experiment)
    assert lab.outcomes(trial) == ["worker_lost", "succeeded"]
    assert lab.places(trial)[1] != [place]
    assert not lab.events(scheduler.WorkerLost)


def test_a_worker_that_is_back_in_time_goes_on_with_what_it_runs(lab):
    wide, (gang,) = lab.submit("wide", slots=8)
    small, (single,) = lab.submit("small", slots=2)
    lab.until_held(gang, single)
    for name in lab.workers():
        lab.stop(name)
    lab.wait(BACK_IN_TIME_S)
    for name in lab.workers():
        lab.start(name)
    lab.until(lambda: len(lab.events(worker.WorkerRegistered)) == 6, "all workers to be back")
    for gate in ("wide", "small"):
        lab.open(gate)
    lab.finished(wide, small)
    assert (lab.runs(gang), lab.runs(single)) == (1, 1)
    assert lab.batches(gang) == lab.batches(single) == ALL
    assert not lab.events(scheduler.WorkerLost)


def test_a_worker_that_is_back_too_late_ends_what_is_no_longer_its_own(lab):
    experiment, (trial,) = lab.submit("late", slots=4)
    lab.until_held(trial)
    ((place,),) = lab.places(trial)
    old = lab.processes(place)
    assert old
    lab.stop(place)
    lab.script_info(trial, 2)
    assert lab.processes(place) == old
    lab.start(place)
    lab.until(lambda: not lab.processes(place), "the old run to end")
    lab.open("late")
    lab.finished(experiment)
    assert lab.outcomes(trial) == ["worker_lost", "succeeded"]
    assert lab.here() == set(lab.workers())


def test_a_worker_that_is_back_with_fewer_slots_keeps_what_still_fits(lab):
    experiment, trials = lab.submit("shrunk", slots=2, trials=6)
    lab.until_held(*trials)
    place = lab.workers()[0]
    there = {
        p.slots: e.trial_id
        for e in lab.events(scheduler.AllocationAssigned)
        for p in e.parts
        if p.worker_id == place
    }
    kept_trial, moved_trial = there[0, 1], there[2, 3]
    lab.stop(place)
    lab.start(place, slots=2)
    lab.until(lambda: lab.outcomes(moved_trial) == ["worker_lost"], "the trial on the lost slots to end")
    lab.open("shrunk")
    lab.finished(experiment)
    assert lab.runs(kept_trial) == 1
    assert lab.runs(moved_trial) == 2


def test_what_the_log_refused_to_store_is_decided_as_soon_as_it_takes_it(lab):
    experiment, (trial,) = lab.submit("refused")
    lab.until_held(trial)
    # The command is stored, but none of its consequences; nobody reports anything meanwhile.
    lab.kill_as_space_runs_out(experiment)
    lab.wait(5)
    assert lab.state(experiment) == "STOPPING_KILLED"
    lab.make_space()
    assert lab.wait_for_end(experiment) == "CANCELED"


def test_a_worker_that_hung_for_too_long_gives_up_what_others_took_over(lab):
    experiment, (trial,) = lab.submit("hung", slots=8)
    lab.until_held(trial)
    hung = lab.places(trial)[0][0]
    lab.hang(hung)
    lab.script_info(trial, 2)
    assert lab.processes(hung)
    lab.wake(hung)
    lab.until(lambda: not lab.processes(hung), "the old run to end")
    lab.open("hung")
    lab.finished(experiment)
    assert lab.outcomes(trial) == ["worker_lost", "succeeded"]
    lab.until(lambda: lab.here() == set(lab.workers()), "the worker to be back")
