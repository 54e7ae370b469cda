"""Opening and closing workers and slots, and slots that vanish (scheduling spec, section 7)."""

import msgspec
import pytest

from det_contracts.commands import SwitchSlot, SwitchWorker
from det_contracts.events import scheduler, searcher, worker
from det_contracts.problems import Refused
from services.kit.rules import Call
from services.scheduler.app import RULES
from services.scheduler.commands import ReportSilence


def of(kind, events):
    return [e for e in events if isinstance(e, kind)]


def switch(cluster, enabled, drain=False, worker_id="w1"):
    return cluster.rule(SwitchWorker(worker_id=worker_id, enabled=enabled, drain=drain, user="bob"))


def switch_slot(cluster, slot, enabled, drain=False):
    return cluster.rule(SwitchSlot(worker_id="w1", slot_id=slot, enabled=enabled, drain=drain, user="bob"))


@pytest.fixture
def busy(cluster):
    """A worker of two slots; trial 1 runs on its slot 0."""
    cluster.worker()
    cluster.request(1)
    cluster.started(1)
    return cluster


def test_a_disabled_worker_loses_its_work_without_blame(busy):
    (kill,) = of(scheduler.KillRequested, switch(busy, False))
    assert kill.reason == "agent disabled: w1"
    (ended,) = of(scheduler.AllocationEnded, busy.exited(1, 137))
    assert ended.outcome == "killed"
    assert busy.request(2) == []
    assert of(scheduler.AllocationAssigned, switch(busy, True))


def test_a_draining_worker_ends_its_work_and_takes_none(busy):
    assert of(scheduler.KillRequested, switch(busy, False, drain=True)) == []
    assert busy.request(2) == []
    (ended,) = busy.exited(1)
    assert ended.outcome == "succeeded"
    (assigned,) = of(scheduler.AllocationAssigned, switch(busy, True))
    assert assigned.trial_id == 2
    assert not busy.state.workers["w1"].switch.draining


def test_a_switch_outlives_the_worker_process(busy):
    switch(busy, False, drain=True)
    busy.worker(session="s2", running=["1.t1.1"], reads_after=1000)
    assert busy.request(2) == []


def test_a_disabled_slot_loses_its_task_and_counts_no_more(busy):
    (kill,) = of(scheduler.KillRequested, switch_slot(busy, 0, False))
    assert kill.reason == "slot disabled: 0 of w1"
    busy.exited(1, 137)
    (assigned,) = busy.request(2)
    assert assigned.parts[0].slots == (1,)
    assert busy.request(3) == []


def test_a_draining_slot_keeps_its_task_and_is_not_offered(busy):
    assert of(scheduler.KillRequested, switch_slot(busy, 0, False, drain=True)) == []
    (assigned,) = busy.request(2)
    assert assigned.parts[0].slots == (1,)
    busy.exited(1)
    assert busy.request(3) == []
    assert of(scheduler.AllocationAssigned, switch_slot(busy, 0, True))


def test_a_free_slot_that_is_disabled_leaves_the_others(busy):
    switch_slot(busy, 1, False)
    assert busy.request(2) == []


@pytest.mark.parametrize("enabled", [True, False])
def test_what_is_so_already_decides_nothing(busy, enabled):
    switch(busy, enabled)
    assert of(scheduler.WorkerSwitched, switch(busy, enabled)) == []
    switch_slot(busy, 1, enabled)
    assert of(scheduler.SlotSwitched, switch_slot(busy, 1, enabled)) == []


def test_unknown_and_absent_workers_are_refused(busy):
    with pytest.raises(Refused, match="agent 'w9' not found"):
        switch(busy, False, worker_id="w9")
    with pytest.raises(Refused, match="slot 'w1/7' not found"):
        switch_slot(busy, 7, False)
    busy.decisions_after(scheduler.WorkerLost("w1", "silent"))
    with pytest.raises(Refused, match="agent disconnected, wait for recovery"):
        switch(busy, False)
    busy.decisions_after(worker.WorkerLeft("w1", "s1"))
    with pytest.raises(Refused, match="agent 'w1' not found"):
        switch(busy, False)


def test_what_ran_on_a_slot_that_vanished_is_lost(busy):
    busy.request(2)
    busy.started(2)
    decided = busy.worker(session="s2", slots=[1], running=["1.t1.1", "1.t2.1"], reads_after=1000)
    (ended,) = of(scheduler.AllocationEnded, decided)
    assert (ended.trial_id, ended.outcome) == (1, "worker_lost")
    assert busy.state.allocations["1.t2.1"].state == "RUNNING"
    assert busy.request(3) == []


def test_lost_slots_stay_lost_while_their_runs_are_not_over(cluster):
    cluster.worker(slots=4)
    cluster.request(1, slots=4)
    cluster.started(1)
    cluster.fold.apply(worker.AllocationStarted("w1", "1.t1.1"))
    cluster.worker(session="s2", slots=1, running=["1.t1.1"], reads_after=0)
    cluster.worker(session="s3", slots=1, running=["1.t1.1"], reads_after=0)
    cluster.request(2, slots=4)
    assert all(len(a.members) == 0 for a in cluster.state.allocations.values() if a.trial_id == 2)


@pytest.mark.parametrize("news", ["left", "lost", "shrunk"])
def test_an_assignment_that_comes_too_late_is_lost_at_once(cluster, news):
    cluster.worker(slots=1)
    cluster.fold.apply(
        searcher.RunRequested(
            trial_id=1,
            experiment_id=1,
            task_id="1.t1",
            allocation_id="1.t1.1",
            run=1,
            slots=1,
            pool="default",
            priority=42,
            reason="test",
        )
    )
    (assigned,) = RULES.react(cluster.state, ("pools", "default"))
    if news == "left":
        cluster.fold.apply(worker.WorkerLeft("w1", "s1"))
    elif news == "lost":
        cluster.fold.apply(scheduler.WorkerLost("w1", "silent"))
    else:
        cluster.worker(session="s2", slots=[7], reads_after=0)
    (ended,) = of(scheduler.AllocationEnded, cluster.decisions_after(assigned))
    assert ended.outcome == "worker_lost"


def test_a_worker_may_move_to_another_pool(cluster):
    cluster.worker()
    assert cluster.worker(session="s2", pool="b") == []
    assert cluster.request(1) == []
    cluster.job(2, pool="b")
    (assigned,) = cluster.request(2, experiment=2)
    assert assigned.parts[0].worker_id == "w1"


@pytest.mark.parametrize("kind", ["fair_share", "priority", "round_robin"])
def test_a_worker_that_moves_to_another_pool_offers_there_only_what_is_free(cluster, kind):
    """What it runs keeps running in the pool that it came from, on slots that are not free for others."""
    cluster.pool("b", scheduler=kind)
    cluster.worker(slots=3)
    cluster.job(1)
    cluster.request(1, slots=2)
    cluster.worker(slots=3, session="s2", pool="b", running=["1.t1.1"], reads_after=1000)
    cluster.job(2, pool="b")
    assert cluster.request(2, slots=2, experiment=2) == []
    cluster.job(3, pool="b")
    (small,) = cluster.request(3, slots=1, experiment=3)
    assert small.parts[0].slots == (2,)
    (assigned,) = of(scheduler.AllocationAssigned, cluster.exited(1))
    assert (assigned.allocation_id, assigned.parts[0].slots) == ("1.t2.1", (0, 1))


@pytest.mark.parametrize("repeated", ["s1", "s2"])
@pytest.mark.parametrize("presence", ["here", "lost", "left"])
def test_a_repeated_registration_changes_nothing(cluster, repeated, presence):
    """The broker may store a message twice: by the repeat, the worker would hold nothing of what it runs."""
    cluster.worker(slots=2, session="s1", reads_after=2**53 - 1)
    cluster.worker(slots=2, session="s2", reads_after=2**53 - 1)
    cluster.job(1)
    (assigned,) = cluster.request(1)
    cluster.fold.apply(worker.AllocationStarted("w1", assigned.allocation_id))
    if presence != "here":
        gone = scheduler.WorkerLost("w1", "silent") if presence == "lost" else worker.WorkerLeft("w1", "s2")
        cluster.decisions_after(gone)
    before = cluster.fold.state.workers["w1"], dict(cluster.fold.state.allocations)
    assert cluster.worker(slots=2, session=repeated, reads_after=2**53 - 1) == []
    assert (cluster.fold.state.workers["w1"], dict(cluster.fold.state.allocations)) == before
    # A new session is no repeat.
    cluster.worker(slots=2, session="s3", reads_after=2**53 - 1)
    assert cluster.fold.state.workers["w1"].session == "s3"


@pytest.mark.parametrize("gone", [scheduler.WorkerLost("w1", "silent"), worker.WorkerLeft("w1", "s1")])
def test_a_repeat_of_a_refused_registration_does_not_get_the_id_later(cluster, gone):
    """Its sender has ended, and a worker that came after it would take this for a copy of itself."""
    cluster.worker(session="s1", instance="a")
    cluster.worker(session="s2", instance="b")
    assert cluster.state.workers["w1"].refused == "s2"
    cluster.decisions_after(gone)
    before = cluster.state.workers["w1"]
    assert cluster.worker(session="s2", instance="b") == []
    assert cluster.state.workers["w1"] == before
    cluster.worker(session="s3", instance="b")
    cluster.worker(session="s2", instance="b")
    assert cluster.state.workers["w1"].session == "s3"


def test_a_repeated_goodbye_takes_nothing_from_the_next_session(cluster):
    cluster.worker(session="s1")
    cluster.decisions_after(worker.WorkerLeft("w1", "s1"))
    cluster.worker(session="s2")
    cluster.request(1)
    before = cluster.state.workers["w1"], dict(cluster.state.allocations)
    assert cluster.decisions_after(worker.WorkerLeft("w1", "s1")) == []
    assert (cluster.state.workers["w1"], dict(cluster.state.allocations)) == before


@pytest.mark.parametrize("again", ["at once", "when a worker of the gang still runs"])
def test_repeats_of_a_start_and_an_exit_change_nothing(cluster, again):
    cluster.worker("w1", slots=1)
    cluster.worker("w2", slots=1)
    cluster.request(1, slots=2)
    cluster.started(1, "w1")
    if again != "at once":
        cluster.started(1, "w2")
    cluster.exited(1, 0, worker_id="w1")
    before = cluster.state.allocations["1.t1.1"]
    assert cluster.exited(1, 137, "later", worker_id="w1") == []
    assert cluster.started(1, "w1") == []
    assert cluster.state.allocations["1.t1.1"] == before
    cluster.started(1, "w2")
    (ended,) = of(scheduler.AllocationEnded, cluster.exited(1, 0, worker_id="w2"))
    assert ended.outcome == "succeeded"
    assert [*cluster.exited(1, 1, worker_id="w2"), *cluster.started(1, "w2")] == []


@pytest.mark.parametrize("named", ["s1", ""])
def test_what_was_lost_of_a_session_takes_nothing_from_the_next_one(cluster, named):
    """The worker may register again while the scheduler states that it is lost."""
    cluster.worker(session="s1")
    (lost,) = RULES.commands[ReportSilence](
        cluster.state, ReportSilence("w1", "s1", 30.0), Call("c", 0.0)
    ).events
    assert lost.session == "s1"
    cluster.worker(session="s2")
    (assigned,) = cluster.request(1)
    ended = cluster.decisions_after(msgspec.structs.replace(lost, session=named))
    if named:
        assert ended == []
        assert cluster.state.workers["w1"].presence == "here"
    else:
        # Events of before name no session, and always count.
        assert cluster.state.workers["w1"].presence == "lost"
        assert of(scheduler.AllocationEnded, ended)[0].allocation_id == assigned.allocation_id
