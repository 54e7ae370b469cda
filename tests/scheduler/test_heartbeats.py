"""Who counts as silent."""

import asyncio
from types import SimpleNamespace

import pytest

from det_contracts.events import scheduler
from det_contracts.events.worker import AllocationExited, Slot, WorkerLeft, WorkerRegistered
from services.scheduler import heartbeats
from services.scheduler.commands import GiveUp

PATIENCE_S = 25.0


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(at=1000.0)
    monkeypatch.setattr(heartbeats, "since_boot", lambda: now.at)
    return now


@pytest.fixture
def watch(clock):
    return heartbeats.HeartbeatMonitor(PATIENCE_S)


def beat(watch, worker_id="w1", session="s1"):
    asyncio.run(watch.on_heartbeat(SimpleNamespace(subject=f"heartbeat.{worker_id}", data=session.encode())))


def after(seconds, clock, watch, cluster):
    """Look every second; who is silent at the end."""
    for _ in range(int(seconds)):
        clock.at += 1.0
        reports = watch.silence_reports(cluster.state)
    return [(report.worker_id, report.session) for report in reports]


def test_silence_counts_from_the_last_heartbeat(cluster, clock, watch):
    cluster.worker()
    assert after(20, clock, watch, cluster) == []
    beat(watch)
    assert after(25, clock, watch, cluster) == []
    assert after(1, clock, watch, cluster) == [("w1", "s1")]


def test_a_registration_is_a_sign_of_life(cluster, clock, watch):
    after(30, clock, watch, cluster)
    cluster.worker()
    assert after(26, clock, watch, cluster) == []
    assert after(1, clock, watch, cluster) == [("w1", "s1")]
    cluster.worker(session="s2")
    assert after(26, clock, watch, cluster) == []
    assert after(1, clock, watch, cluster) == [("w1", "s2")]


def test_another_process_of_the_name_is_no_sign_of_life(cluster, clock, watch):
    cluster.worker()
    for _ in range(26):
        assert after(1, clock, watch, cluster) == []
        beat(watch, session="another")
    assert after(1, clock, watch, cluster) == [("w1", "s1")]


def test_heartbeats_of_ended_sessions_are_dropped(cluster, clock, watch):
    cluster.worker()
    for number in range(50):
        beat(watch, session=f"old-{number}")
    beat(watch)
    after(30, clock, watch, cluster)
    assert watch._last_heartbeats == {"w1": {"s1": 1000.0}}


def test_heartbeats_of_unknown_workers_are_dropped(cluster, clock, watch):
    cluster.worker("gone")
    beat(watch, "stranger", "s9")
    after(1, clock, watch, cluster)
    assert set(watch._last_heartbeats) == {"stranger"}
    cluster.decisions_after(WorkerLeft("gone", "s1"), scheduler.WorkerForgotten("gone", "away for long"))
    after(PATIENCE_S + 1, clock, watch, cluster)
    assert (watch._last_heartbeats, watch._first_seen) == ({}, {})


def test_who_invents_sessions_fills_no_memory(cluster, clock, watch):
    cluster.worker()
    beat(watch)
    beat(watch, session="x" * (heartbeats.MAX_SESSION_BYTES + 1))
    for number in range(heartbeats.MAX_SESSIONS - 1):
        beat(watch, session=f"made up {number}")
        beat(watch, "stranger", f"made up {number}")
    # The one that counts is not pushed out by as many as get through.
    assert watch._last_heartbeats["w1"]["s1"] == clock.at
    for number in range(10):
        beat(watch, "stranger", f"another {number}")
    assert {id: len(sessions) for id, sessions in watch._last_heartbeats.items()} == {
        "w1": heartbeats.MAX_SESSIONS,
        "stranger": heartbeats.MAX_SESSIONS,
    }


def test_who_does_not_lead_drops_the_same(cluster, clock, watch):
    cluster.worker()
    for id, session in (("w1", "s1"), ("w1", "s0"), ("gone", "s7")):
        beat(watch, id, session)
    clock.at += PATIENCE_S + 1
    beat(watch, "w1", "s1")
    watch.restart(cluster.state)
    assert watch._last_heartbeats == {"w1": {"s1": clock.at}}


def test_silence_counts_from_the_restart_of_the_watch(cluster, clock, watch):
    cluster.worker()
    after(20, clock, watch, cluster)
    watch.restart(cluster.state)
    assert after(25, clock, watch, cluster) == []
    assert after(1, clock, watch, cluster) == [("w1", "s1")]


def test_a_watch_that_stood_still_blames_nobody(cluster, clock, watch):
    cluster.worker()
    after(20, clock, watch, cluster)
    clock.at += 600
    assert after(25, clock, watch, cluster) == []
    assert after(2, clock, watch, cluster) == [("w1", "s1")]


@pytest.fixture
def fenced(cluster):
    """Trial 1 runs on worker w1, which is lost; its host has 40 s to end it."""
    cluster.pool(on_lost="fence", fence_after_s=40.0)
    cluster.worker()
    (assigned,) = cluster.request(1)
    assert assigned.fence_s == 40.0
    cluster.started(1)
    (kill,) = cluster.decisions_after(scheduler.WorkerLost("w1", "silent"))
    assert (kill.allocation_id, kill.reason) == ("1.t1.1", "worker w1 was lost")
    return cluster


def give_up_commands(seconds, clock, watch, cluster):
    for _ in range(int(seconds)):
        clock.at += 1.0
        watch.silence_reports(cluster.state)
        commands = watch.give_up_commands(cluster.state)
    return [(command.allocation_id, command.worker_id) for command in commands]


def test_what_its_host_must_have_ended_is_given_up_and_starts_elsewhere(fenced, clock, watch):
    assert give_up_commands(40 + heartbeats.GRACE_S + 1, clock, watch, fenced) == []
    assert give_up_commands(1, clock, watch, fenced) == [("1.t1.1", "w1")]
    (ended,) = fenced.rule(GiveUp("1.t1.1", "w1", 46.0))
    assert (ended.outcome, ended.reason) == ("worker_lost", "worker w1 was lost")
    assert fenced.rule(GiveUp("1.t1.1", "w1", 46.0)) == []


def test_the_wait_begins_again_after_the_watch_restarted(fenced, clock, watch):
    give_up_commands(30, clock, watch, fenced)
    watch.restart(fenced.state)
    assert give_up_commands(40, clock, watch, fenced) == []
    clock.at += 600
    assert give_up_commands(40, clock, watch, fenced) == []
    assert give_up_commands(7, clock, watch, fenced) == [("1.t1.1", "w1")]


def test_its_own_word_ends_the_wait(fenced, clock, watch):
    give_up_commands(30, clock, watch, fenced)
    (ended,) = fenced.decisions_after(AllocationExited(worker_id="w1", allocation_id="1.t1.1", exit_code=137))
    assert ended.outcome == "worker_lost"
    assert give_up_commands(60, clock, watch, fenced) == []


@pytest.mark.parametrize(("instance", "over"), [("", True), ("another folder", False)])
def test_only_the_worker_that_ran_it_can_say_that_it_runs_no_more(fenced, instance, over):
    registered = WorkerRegistered(
        worker_id="w1",
        instance=instance,
        session="s2",
        pool="default",
        address="",
        version="1",
        slots=(Slot(0, "cpu", "", ""),),
        reads_after=1000,
        running=(),
    )
    ended = [e for e in fenced.decisions_after(registered) if isinstance(e, scheduler.AllocationEnded)]
    assert bool(ended) == over


def test_a_run_that_its_host_ended_has_not_failed(cluster):
    cluster.worker()
    cluster.request(1)
    cluster.started(1)
    exited = AllocationExited(
        worker_id="w1", allocation_id="1.t1.1", exit_code=137, lost=True, message="out of touch"
    )
    ended = cluster.decisions_after(exited)[0]
    assert (ended.outcome, ended.reason) == ("worker_lost", "worker w1 was lost: out of touch")
