"""The scheduler's rules: who gets slots, who loses them, and how an allocation ends."""

import pytest

from det_contracts.commands import AskToLeave, MarkDaemon
from det_contracts.events import checkpoints, scheduler, searcher, worker
from det_contracts.problems import Refused
from services.kit.rules import Call
from services.scheduler.app import RULES
from services.scheduler.commands import ReportSilence
from services.scheduler.domain.fold import PAUSE_S
from services.scheduler.queries import waiting
from services.scheduler.steps import PREEMPTION_DEADLINE_S


def of(kind, events):
    return [e for e in events if isinstance(e, kind)]


def test_a_request_waits_until_a_worker_comes(cluster):
    assert cluster.request(1) == []
    (assigned,) = of(scheduler.AllocationAssigned, cluster.worker())
    assert assigned.parts == (scheduler.Part("w1", (0,), 0),)
    assert assigned.reason


def test_slots_are_given_in_order_of_requests_and_never_twice(cluster):
    cluster.worker(slots=2)
    assigned = [e for id in (1, 2, 3) for e in cluster.request(id)]
    assert [(a.trial_id, a.parts[0].slots) for a in assigned] == [(1, (0,)), (2, (1,))]
    cluster.started(1)
    decided = cluster.exited(1)
    assert [type(e) for e in decided] == [scheduler.AllocationEnded, scheduler.AllocationAssigned]
    assert (decided[1].trial_id, decided[1].parts[0].slots) == (3, (0,))


def test_a_higher_priority_goes_first(cluster):
    cluster.pool(scheduler="priority")
    cluster.job(1, priority=50)
    cluster.job(2, priority=10)
    cluster.request(1)
    cluster.request(2, experiment=2)
    (assigned,) = of(scheduler.AllocationAssigned, cluster.worker(slots=1))
    assert assigned.trial_id == 2


def test_a_request_too_large_says_why_it_waits(cluster):
    from det_contracts.queries import Waiting

    cluster.worker(slots=2)
    cluster.request(1, slots=5)
    (sentence,) = waiting(cluster.state, Waiting()).values()
    assert "5" in sentence


def test_a_ready_run_is_asked_to_leave_with_a_deadline(cluster):
    cluster.worker()
    cluster.request(1)
    cluster.started(1)
    (preemption,) = cluster.stop(1)
    assert isinstance(preemption, scheduler.PreemptRequested)
    assert preemption.within_s == PREEMPTION_DEADLINE_S
    (ended,) = of(scheduler.AllocationEnded, cluster.exited(1))
    assert ended.outcome == "succeeded"


def test_a_run_that_ignores_the_deadline_is_killed_without_blame(cluster):
    cluster.worker()
    cluster.request(1)
    cluster.started(1)
    cluster.stop(1)
    assert cluster.fold.pass_time(PREEMPTION_DEADLINE_S - 1) == []
    (passed,) = cluster.fold.pass_time(2)
    assert isinstance(passed, scheduler.DeadlinePassed)
    (kill,) = cluster.fold.decide()
    assert kill.reason == "allocation did not preempt in 1h0m0s"
    assert cluster.fold.pass_time(10) == []
    (ended,) = of(scheduler.AllocationEnded, cluster.exited(1, 137))
    assert ended.outcome == "killed"


def test_a_run_that_has_not_started_is_killed_at_once(cluster):
    cluster.worker()
    cluster.request(1)
    (kill,) = cluster.stop(1)
    assert isinstance(kill, scheduler.KillRequested)
    (ended,) = of(scheduler.AllocationEnded, cluster.exited(1, None, "ended before it was started"))
    assert ended.outcome == "killed"


def test_a_waiting_request_that_is_stopped_ends_at_once(cluster):
    cluster.request(1)
    (ended,) = cluster.stop(1)
    assert (ended.outcome, ended.reason) == ("killed", "paused by ann")
    assert not of(scheduler.AllocationAssigned, cluster.worker())


@pytest.mark.parametrize(
    ("code", "message", "outcome", "reason"),
    [
        (0, "", "succeeded", "exit code 0"),
        (3, "", "failed", "exit code 3"),
        (137, "", "failed", "killed by SIGKILL (exit code 137)"),
        (127, "cannot start 'x'", "failed", "exit code 127: cannot start 'x'"),
        (None, "no such storage", "not_started", "no such storage"),
    ],
)
def test_how_a_run_ended_is_said(cluster, code, message, outcome, reason):
    cluster.worker()
    cluster.request(1)
    cluster.started(1)
    (ended,) = of(scheduler.AllocationEnded, cluster.exited(1, code, message))
    assert (ended.outcome, ended.reason) == (outcome, reason)


def test_a_silent_worker_is_lost_and_its_runs_with_it(cluster):
    cluster.worker()
    cluster.request(1)
    cluster.started(1)
    result = RULES.commands[ReportSilence](cluster.state, ReportSilence("w1", "s1", 30.0), Call("c", 0.0))
    decided = cluster.decisions_after(*result.events)
    (ended,) = of(scheduler.AllocationEnded, decided)
    assert (ended.outcome, ended.reason) == ("worker_lost", "worker w1 was lost")
    assert not of(scheduler.AllocationAssigned, cluster.request(2))
    assert of(scheduler.AllocationAssigned, cluster.worker(session="s2"))


def test_a_worker_that_came_back_is_not_reported_for_its_old_silence(cluster):
    cluster.worker()
    cluster.worker(session="s2")
    result = RULES.commands[ReportSilence](cluster.state, ReportSilence("w1", "s1", 30.0), Call("c", 0.0))
    assert not result.events


def test_a_restarted_worker_keeps_the_runs_that_it_still_holds(cluster):
    cluster.worker()
    cluster.request(1)
    cluster.request(2)
    cluster.started(1)
    cluster.started(2)
    decided = cluster.worker(session="s2", running=["1.t1.1"], reads_after=1000)
    (ended,) = of(scheduler.AllocationEnded, decided)
    assert (ended.trial_id, ended.outcome) == (2, "worker_lost")
    assert "1.t1.1" in cluster.state.allocations


def test_what_a_worker_has_still_to_read_is_not_lost(cluster):
    cluster.worker()
    cluster.request(1)
    assigned = cluster.state.allocations["1.t1.1"].assigned
    assert cluster.worker(session="s2", reads_after=assigned - 1) == []
    assert of(scheduler.AllocationEnded, cluster.worker(session="s3", reads_after=assigned))


def test_a_worker_that_left_takes_its_runs_along(cluster):
    cluster.worker()
    cluster.request(1)
    (ended,) = of(scheduler.AllocationEnded, cluster.decisions_after(worker.WorkerLeft("w1", "s1")))
    assert ended.outcome == "worker_lost"


def test_a_gang_is_never_partial_and_shares_its_fate(cluster):
    cluster.worker("w1", slots=2)
    assert cluster.request(1, slots=4) == []
    (assigned,) = of(scheduler.AllocationAssigned, cluster.worker("w2", slots=2))
    assert [(p.worker_id, p.slots, p.rank) for p in assigned.parts] == [("w1", (0, 1), 0), ("w2", (0, 1), 1)]
    cluster.started(1, "w1")
    cluster.started(1, "w2")
    (kill,) = of(scheduler.KillRequested, cluster.exited(1, 3, worker_id="w2"))
    assert "exit code 3" in kill.reason
    (ended,) = of(scheduler.AllocationEnded, cluster.exited(1, 137, worker_id="w1"))
    assert (ended.outcome, ended.exit_code) == ("failed", 3)


@pytest.mark.parametrize("first", ["w1", "w2"])
def test_the_first_part_to_fail_gives_the_verdict_though_it_looks_like_our_kill(cluster, first):
    for name in ("w1", "w2"):
        cluster.worker(name, slots=2)
    cluster.request(1, slots=4)
    for name in ("w1", "w2"):
        cluster.started(1, name)
    cluster.exited(1, 137, worker_id=first)
    (ended,) = of(scheduler.AllocationEnded, cluster.exited(1, 1, worker_id="w2" if first == "w1" else "w1"))
    assert (ended.outcome, ended.exit_code) == ("failed", 137)


@pytest.fixture
def gang(cluster):
    """Trial 1 on w1 (rank 0) and w2 (rank 1), both started; rank 1 is a daemon."""
    for name in ("w1", "w2"):
        cluster.worker(name, slots=2)
    cluster.request(1, slots=4)
    for name in ("w1", "w2"):
        cluster.started(1, name)
    cluster.rule(MarkDaemon(allocation_id="1.t1.1", rank=1, user="ann"))
    return cluster


def test_a_daemon_ends_with_those_that_it_serves(gang):
    (kill,) = of(scheduler.KillRequested, gang.exited(1, 0, worker_id="w1"))
    assert kill.reason == "what it served is over"
    (ended,) = of(scheduler.AllocationEnded, gang.exited(1, 137, worker_id="w2"))
    assert (ended.outcome, ended.exit_code) == ("succeeded", 0)


def test_a_failing_rank_is_reported_whatever_its_daemon_did(gang):
    gang.exited(1, 3, worker_id="w1")
    (ended,) = of(scheduler.AllocationEnded, gang.exited(1, 137, worker_id="w2"))
    assert (ended.outcome, ended.exit_code) == ("failed", 3)


def test_a_daemon_that_fails_first_fails_all(gang):
    gang.exited(1, 9, worker_id="w2")
    (ended,) = of(scheduler.AllocationEnded, gang.exited(1, 137, worker_id="w1"))
    assert (ended.outcome, ended.exit_code) == ("failed", 9)


def test_an_only_part_is_no_daemon(cluster):
    cluster.worker()
    cluster.request(1)
    cluster.started(1)
    cluster.rule(MarkDaemon(allocation_id="1.t1.1", rank=0, user="ann"))
    assert not cluster.state.allocations["1.t1.1"].members[0].daemon
    with pytest.raises(Refused, match="not found"):
        cluster.rule(MarkDaemon(allocation_id="1.t1.1", rank=5, user="ann"))
    with pytest.raises(Refused, match="not found"):
        cluster.rule(MarkDaemon(allocation_id="1.t9.1", rank=0, user="ann"))


def test_a_host_may_want_an_allocation_to_leave(cluster):
    cluster.worker()
    cluster.request(1)
    cluster.started(1)
    (preemption,) = cluster.fold.rule(AskToLeave(allocation_id="1.t1.1", user="ann")).events
    assert preemption.within_s == PREEMPTION_DEADLINE_S
    assert cluster.fold.rule(AskToLeave(allocation_id="1.t1.1", user="ann")).events == ()


def test_a_deletion_runs_as_a_task_without_slots(cluster):
    cluster.worker(slots=1)
    cluster.request(1)
    decided = cluster.decisions_after(
        checkpoints.DeletionRequested(task_id="1.gc-1", experiment_id=1, uuids=("u",), reason="retention")
    )
    (assigned,) = of(scheduler.AllocationAssigned, decided)
    assert (assigned.kind, assigned.parts) == ("CHECKPOINT_GC", (scheduler.Part("w1", (), 0),))


def test_a_repeated_exit_changes_nothing(cluster):
    cluster.worker()
    cluster.request(1)
    cluster.started(1)
    cluster.exited(1)
    before = dict(cluster.state.allocations)
    assert cluster.exited(1, 1) == []
    assert cluster.state.allocations == before


def test_every_decision_carries_a_reason(cluster):
    cluster.worker()
    cluster.request(1)
    cluster.started(1)
    cluster.stop(1, kill=True)
    cluster.exited(1, 137)
    assert len(cluster.fold.decided) == 3
    assert all(event.reason for event in cluster.fold.decided)


@pytest.fixture
def between_two_runs(cluster):
    """One slot; trial 1 of the older job has just left it, and one of a younger job waits."""
    cluster.worker(slots=1)
    cluster.job(1)
    cluster.job(2)
    cluster.request(1)
    cluster.started(1)
    cluster.request(2, experiment=2)
    assert of(scheduler.AllocationAssigned, cluster.exited(1)) == []
    return cluster


def test_a_trial_between_two_runs_keeps_its_share(between_two_runs):
    between_two_runs.fold.pass_time(PAUSE_S - 1)
    between_two_runs.fold.apply(searcher.RunEnded(trial_id=1, run=1, restarts=0, reason="preempted"))
    (again,) = of(scheduler.AllocationAssigned, between_two_runs.request(1, run=2))
    assert again.trial_id == 1
    assert between_two_runs.fold.pass_time(PAUSE_S) == []


def test_nobody_waits_for_ever_beside_a_slot_that_is_kept_for_a_trial_of_which_nobody_says_anything(
    between_two_runs,
):
    (over,) = between_two_runs.fold.pass_time(PAUSE_S)
    assert isinstance(over, scheduler.PauseOver)
    (assigned,) = between_two_runs.fold.decide()
    assert assigned.trial_id == 2
    assert between_two_runs.fold.pass_time(PAUSE_S) == []
