"""Priorities at work: who yields, what that costs, and that nobody is asked twice."""

import pytest

from det_contracts.commands import ChangeJob
from det_contracts.events import scheduler, searcher


def of(kind, events):
    return [e for e in events if isinstance(e, kind)]


@pytest.fixture
def full(cluster):
    """Two slots, both held by an unimportant job; its trials are 1 and 2."""
    cluster.pool(scheduler="priority", preemption=True)
    cluster.job(1, priority=50)
    cluster.worker(slots=2)
    for trial in (1, 2):
        cluster.request(trial)
        cluster.started(trial)
    return cluster


def test_an_important_job_takes_the_slots_of_an_unimportant_one(full):
    full.job(2, priority=10)
    (preemption,) = full.request(3, experiment=2)
    assert isinstance(preemption, scheduler.PreemptRequested)
    assert (preemption.allocation_id, preemption.wanted_by) == ("1.t2.1", "1.t3.1")
    assert preemption.reason == "its slots are wanted by experiment 2 (priority 10)"
    (ended, assigned) = full.exited(2)
    assert (ended.outcome, assigned.trial_id, ended.asked_to_leave) == ("succeeded", 3, True)
    (by_itself,) = of(scheduler.AllocationEnded, full.exited(1))
    assert not by_itself.asked_to_leave


def test_nobody_else_is_asked_while_somebody_is_leaving(full):
    full.job(2, priority=10)
    full.request(3, experiment=2)
    assert full.fold.decide() == []
    assert full.job(3, priority=60) == []
    (second,) = full.request(4, experiment=2)
    assert second.allocation_id == "1.t1.1"


def test_what_has_not_started_is_killed_and_not_blamed(cluster):
    cluster.pool(scheduler="priority", preemption=True)
    cluster.job(1, priority=50)
    cluster.worker(slots=1)
    cluster.request(1)
    cluster.job(2, priority=10)
    (kill,) = cluster.request(2, experiment=2)
    assert isinstance(kill, scheduler.KillRequested)
    assert kill.reason.endswith("it had not started yet")
    ended, assigned = cluster.exited(1, None, "ended before it was started")
    assert (ended.outcome, assigned.trial_id) == ("killed", 2)


def test_one_that_does_not_leave_in_time_is_killed(full):
    full.job(2, priority=10)
    full.request(3, experiment=2)
    assert full.fold.pass_time(3601)
    (kill,) = full.fold.decide()
    assert (kill.allocation_id, kill.reason) == ("1.t2.1", "allocation did not preempt in 1h0m0s")


def test_without_preemption_it_waits(full):
    full.pool(scheduler="priority")
    full.job(2, priority=10)
    assert full.request(3, experiment=2) == []


def test_a_raised_priority_counts_at_once(full):
    full.job(2, priority=60)
    assert full.request(3, experiment=2) == []
    (preemption,) = full.rule(ChangeJob(experiment_id=2, priority=10, user="bob"))
    assert preemption.wanted_by == "1.t3.1"


def test_a_limit_of_slots_holds_and_may_be_lifted(cluster):
    cluster.pool(scheduler="priority")
    cluster.job(1, max_slots=1)
    cluster.worker(slots=4)
    cluster.request(1)
    assert cluster.request(2) == []
    (assigned,) = cluster.rule(ChangeJob(experiment_id=1, max_slots=None, user="bob"))
    assert assigned.trial_id == 2


def test_what_can_never_fit_holds_nobody_up(cluster):
    for id in ("w1", "w2"):
        cluster.worker(id, slots=2)
    cluster.job(1, weight=4.0)
    assert cluster.request(1, slots=3) == []
    cluster.job(2)
    (assigned,) = cluster.request(2, slots=2, experiment=2)
    assert assigned.trial_id == 2


def test_between_two_runs_a_trial_still_counts(cluster):
    cluster.worker(slots=1)
    cluster.job(1)
    cluster.request(1)
    cluster.request(2)
    cluster.started(1)
    cluster.job(2)
    (preemption,) = cluster.request(3, experiment=2)
    assert preemption.allocation_id == "1.t1.1"
    # The job has one waiting trial now, and one between two runs: it is not the poorer of the two.
    _, assigned = cluster.exited(1)
    assert assigned.trial_id == 3
    cluster.decisions_after(searcher.RunEnded(trial_id=1, run=1, restarts=0, reason="preempted"))
    assert cluster.request(1, run=2) == []


def test_a_job_whose_limit_is_below_its_trials_holds_nobody_up(cluster):
    cluster.worker(slots=2)
    cluster.job(1, max_slots=1)
    cluster.job(2)
    cluster.request(1, slots=2)
    (assigned,) = cluster.request(2, slots=2, experiment=2)
    assert assigned.trial_id == 2


def test_fair_share_takes_from_the_rich_when_somebody_comes(cluster):
    cluster.job(1)
    cluster.worker(slots=2)
    for trial in (1, 2):
        cluster.request(trial)
        cluster.started(trial)
    cluster.job(2)
    (preemption,) = of(scheduler.PreemptRequested, cluster.request(3, experiment=2))
    assert preemption.allocation_id in ("1.t1.1", "1.t2.1")
    assert preemption.reason
    assert cluster.fold.decide() == []
