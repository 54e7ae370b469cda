"""A worker that is cut off together with its runs: scenarios in virtual time.

With `on_lost: fence`, only one run of a trial has processes at any time, which is checked whenever one
begins. With `keep`, two may run side by side, and nothing from the old one counts.
"""

import asyncio

import pytest

from det_contracts.events import scheduler, searcher, trial
from services.scheduler import heartbeats
from services.scheduler.domain import hosts as scheduling_hosts
from services.scheduler.heartbeats import RECONNECT_WAIT_S
from tests.fixtures.tiers import rest_in_full
from tests.simulation.gated_scripts import BATCHES
from tests.simulation.lab import Lab
from tests.simulation.script import Process
from tests.simulation.worker import HEARTBEAT_S

ALL = list(range(1, BATCHES + 1))
FENCE_S = 40.0
"""Longer than the reconnect wait, so that the scheduler has something to wait for."""


@pytest.fixture(params=rest_in_full(range(3)))
def seed(request):
    return request.param


@pytest.fixture
def fenced(seed):
    with Lab(seed, fence_after_s=FENCE_S) as made:
        yield made
        made.rest()


@pytest.fixture
def unfenced(seed):
    with Lab(seed) as made:
        yield made
        made.rest()


def held(lab, slots=4):
    experiment, (trial_id,) = lab.submit("held", slots=slots)
    lab.until_held(trial_id)
    return experiment, trial_id, lab.places(trial_id)[0][0]


def test_a_cut_off_run_is_over_before_it_starts_elsewhere(fenced):
    experiment, trial_id, place = held(fenced)
    fenced.cut_off(place)
    fenced.until(lambda: not fenced.processes(place), "its host to end it")
    assert fenced.runs(trial_id) == 1
    fenced.script_info(trial_id, 2)
    (given_up,) = fenced.events(scheduler.GivenUp)
    assert given_up.worker_id == place
    fenced.open("held")
    fenced.finished(experiment)
    assert fenced.outcomes(trial_id) == ["worker_lost", "succeeded"]
    assert fenced.places(trial_id)[1] != [place]


def test_a_cut_off_gang_is_over_everywhere_first(fenced):
    experiment, trial_id, _ = held(fenced, slots=8)
    lost = fenced.places(trial_id)[0][1]
    fenced.cut_off(lost)
    fenced.script_info(trial_id, 2)
    fenced.open("held")
    fenced.finished(experiment)
    assert fenced.outcomes(trial_id) == ["worker_lost", "succeeded"]
    fenced.reconnect(lost)


def test_a_worker_that_is_cut_off_for_a_moment_keeps_its_run(fenced):
    experiment, trial_id, place = held(fenced)
    for _ in range(2):
        fenced.cut_off(place)
        fenced.wait(RECONNECT_WAIT_S - HEARTBEAT_S - 2)
        fenced.reconnect(place)
        fenced.wait(2 * HEARTBEAT_S)
    fenced.open("held")
    fenced.finished(experiment)
    assert fenced.runs(trial_id) == 1


def test_one_that_is_back_before_its_host_ended_it_ends_it_at_once_and_nobody_waits(fenced):
    experiment, trial_id, place = held(fenced)
    fenced.cut_off(place)
    fenced.until(lambda: fenced.events(scheduler.WorkerLost), "the worker to be given up")
    assert fenced.processes(place)
    fenced.reconnect(place)
    fenced.script_info(trial_id, 2)
    assert fenced.events(scheduler.GivenUp) == []
    fenced.open("held")
    fenced.finished(experiment)
    assert fenced.outcomes(trial_id) == ["worker_lost", "succeeded"]


def test_a_hanging_worker_does_not_keep_its_runs_alive(fenced):
    experiment, trial_id, place = held(fenced)
    fenced.hang(place)
    fenced.script_info(trial_id, 2)
    assert not fenced.processes(place)
    fenced.wake(place)
    fenced.open("held")
    fenced.finished(experiment)
    assert fenced.outcomes(trial_id) == ["worker_lost", "succeeded"]


def test_whose_signs_of_life_are_lost_alone_ends_its_runs_first(fenced):
    """Only its heartbeats are lost: it learns that it was given up, and reports when its runs are over."""
    experiment, trial_id, place = held(fenced)
    fenced.world.workers[place].deaf = True
    fenced.script_info(trial_id, 2)
    fenced.open("held")
    fenced.finished(experiment)
    assert fenced.events(scheduler.GivenUp) == []


def test_a_fence_ends_runs_that_the_broker_left_alone_and_counts_no_failure(fenced):
    experiment, trial_id, place = held(fenced)
    fenced.stop_broker()
    fenced.wait(FENCE_S + 5)
    assert not fenced.processes(place)
    fenced.start_broker()
    fenced.script_info(trial_id, 2)
    fenced.open("held")
    fenced.finished(experiment)
    assert fenced.events(scheduler.WorkerLost) == []
    assert fenced.outcomes(trial_id) == ["worker_lost", "succeeded"]


def test_without_the_services_runs_go_on(fenced):
    """In touch means with the log: while nobody decides, nothing is started elsewhere."""
    experiment, trial_id, place = held(fenced)
    for owner in fenced.world.rules:
        fenced.freeze(owner)
    fenced.wait(2 * FENCE_S)
    assert fenced.processes(place)
    for owner in fenced.world.rules:
        fenced.thaw(owner)
    fenced.open("held")
    fenced.finished(experiment)
    assert fenced.runs(trial_id) == 1


def test_a_scheduler_that_comes_to_lead_waits_from_then_on(fenced):
    experiment, trial_id, place = held(fenced)
    fenced.cut_off(place)
    fenced.until(lambda: fenced.events(scheduler.WorkerLost), "the worker to be given up")
    fenced.wait(FENCE_S - 5)
    fenced.freeze("scheduler")
    fenced.wait(30)
    fenced.thaw("scheduler")
    fenced.wait(FENCE_S)
    assert fenced.runs(trial_id) == 1
    fenced.script_info(trial_id, 2)
    fenced.open("held")
    fenced.finished(experiment)


def test_a_replacement_worker_does_not_end_the_runs_of_the_lost_one(fenced):
    """Its disk was lost, its processes were not: the new worker reports that it runs nothing."""
    experiment, trial_id, place = held(fenced)
    fenced.cut_off(place)
    fenced.until(lambda: fenced.events(scheduler.WorkerLost), "the worker to be given up")
    second = fenced.twin(place)
    fenced.until(lambda: second.settled, "another worker to take its place")
    fenced.script_info(trial_id, 2)
    fenced.open("held")
    fenced.finished(experiment)
    assert fenced.outcomes(trial_id) == ["worker_lost", "succeeded"]
    fenced._call_in_loop(second.reboot)
    fenced.reconnect(place)


def test_a_kept_run_goes_on_beside_the_new_one_and_nothing_of_it_counts(unfenced):
    experiment, trial_id, place = held(unfenced)
    unfenced.cut_off(place)
    unfenced.script_info(trial_id, 2)
    assert unfenced.processes(place)
    # The old run continues to its end, and reports it as soon as it reaches the log again.
    unfenced.open("held")
    unfenced.wait(1.0)
    unfenced.reconnect(place)
    unfenced.finished(experiment)
    unfenced.until(lambda: not unfenced.processes(place), "the old run to end")
    assert unfenced.outcomes(trial_id) == ["worker_lost", "succeeded"]
    operations = unfenced.events(searcher.OperationSet, trial_id=trial_id)
    counted = unfenced.world.ledger.trials[trial_id].completed
    assert len(counted) == len(operations)
    completions = unfenced.events(trial.OperationCompleted, trial_id=trial_id)
    assert {e.run for e in completions if e.run != 2} <= {1}


# -- the same without the protection


def given_up_at_once(patch):
    """The scheduler does not wait until hosts have ended lost runs."""
    patch.setattr(heartbeats, "GRACE_S", -2 * FENCE_S)


def shims_without_fences(patch):
    """Hosts keep running what is out of touch."""

    async def never(self):
        await asyncio.sleep(0)

    patch.setattr(Process, "_watch_fence", never)


def lost_is_over(patch):
    """Everything that is lost counts as over."""
    lose = scheduling_hosts._mark_lost
    patch.setattr(scheduling_hosts, "_mark_lost", lambda *words, over: lose(*words, over=True))


@pytest.mark.parametrize("plant", [given_up_at_once, shims_without_fences, lost_is_over])
def test_two_processes_of_one_trial_are_noticed(plant, monkeypatch):
    plant(monkeypatch)
    with Lab(1, fence_after_s=FENCE_S) as lab:
        _, trial_id, place = held(lab)
        lab.cut_off(place)
        with pytest.raises(AssertionError, match=r"one process per trial|ends_when_all_parts_are_gone"):
            lab.script_info(trial_id, 2)
