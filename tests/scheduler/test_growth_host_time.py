"""Pools of which the hosts have a time limit: what is asked to leave, and what counts as a failure."""

from datetime import UTC, datetime

import pytest

from det_contracts.events import scheduler
from services.scheduler.domain.provisioned import MAX_BACKOFF_S, MIN_BACKOFF_S
from tests.scheduler.growing import NOTICE_S, later, leaves, of, released, report, wanted, why


def running_for_300_s(cluster):
    """A run on a worker whose host has 300 seconds left; returns when the host goes."""
    cluster.request(1)
    cluster.worker("default-1")
    cluster.started(1, "default-1")
    ends_at = cluster.fold.now + 300.0
    report(cluster, ends_at=ends_at)
    return ends_at


def test_before_its_host_goes_a_workers_tasks_are_asked_to_leave(grow):
    cluster = grow()
    ends_at = running_for_300_s(cluster)
    assert later(cluster, 300 - NOTICE_S - 1) == []
    events = later(cluster, 1)
    assert released(events) == ["default-1"]
    (preemption,) = of(scheduler.PreemptRequested, events)
    assert preemption.reason == f"default-1 is given back: {ends(ends_at)}"
    assert of(scheduler.PreemptRequested, later(cluster, 5)) == []


def ends(at):
    time = datetime.fromtimestamp(at, UTC)
    return f"its engine takes its host away soon: job 7 ends at {time:%Y-%m-%d %H:%M:%S} UTC"


def test_a_run_that_did_not_leave_before_its_host_went_says_whose_time_was_over(grow):
    cluster = grow()
    ends_at = running_for_300_s(cluster)
    later(cluster, 300 - NOTICE_S)
    (ended,) = of(scheduler.AllocationEnded, leaves(cluster))
    assert ended.outcome == "worker_lost"
    assert ended.reason == f"worker default-1 was lost; default-1 is given back: {ends(ends_at)}"


def test_a_pool_whose_hosts_have_less_time_than_the_notice_says_so_and_waits(grow):
    cluster = grow()
    cluster.request(1)
    cluster.worker("default-1")
    ends_at = cluster.fold.now + NOTICE_S
    report(cluster, ends_at=ends_at)
    (event,) = of(scheduler.WorkerReleased, later(cluster, 0))
    assert event.failed
    assert "less time than notice_period, 20 s, so that no task could use it: job 7 ends at" in event.reason
    leaves(cluster)
    report(cluster, phase="over")
    assert wanted(cluster.request(2)) == []
    assert "The pool waits" in why(cluster)
    assert event.reason in why(cluster)
    again = datetime.fromtimestamp(cluster.fold.now + MIN_BACKOFF_S, UTC)
    assert f"It tries again at {again:%Y-%m-%d %H:%M:%S} UTC." in why(cluster)
    assert wanted(later(cluster, MIN_BACKOFF_S)) == ["default-2"]


@pytest.mark.parametrize("registers", ["before its time is known", "after it was given back", "never"])
def test_a_pool_whose_hosts_are_always_too_short_waits_longer_each_time(grow, registers):
    cluster = grow(max_instances=1)
    cluster.request(1)
    pauses = []
    for number in range(1, 9):
        id = f"default-{number}"
        if registers == "before its time is known":
            cluster.worker(id)
        report(cluster, id, ends_at=cluster.fold.now + NOTICE_S)
        assert released(later(cluster, 0)) == [id]
        if registers == "after it was given back":
            cluster.worker(id)
        if registers != "never":
            leaves(cluster, id)
        report(cluster, id, phase="over")
        assert wanted(cluster.request(number + 1)) == []
        failed_at = cluster.fold.now
        while not wanted(later(cluster, MIN_BACKOFF_S)):
            assert cluster.fold.now - failed_at <= MAX_BACKOFF_S
        pauses.append(cluster.fold.now - failed_at)
    assert pauses == [15, 30, 60, 120, 240, 480, 900, 900]
    # One that may stay makes up for all of them.
    cluster.worker("default-9")
    report(cluster, "default-9", ends_at=cluster.fold.now + 300)
    assert cluster.state.supplies["default"].failures == 0


def test_a_host_whose_time_is_cut_later_is_no_failure_of_its_pool(grow):
    cluster = grow()
    cluster.request(1)
    cluster.worker("default-1")
    report(cluster, ends_at=cluster.fold.now + 300.0)
    report(cluster, ends_at=cluster.fold.now + 1.0)
    (event,) = of(scheduler.WorkerReleased, later(cluster, 0))
    assert not event.failed


@pytest.mark.parametrize("ends_at", [-1e300, -1.0, 1e300])
def test_a_time_that_no_calendar_has_stops_nothing(grow, ends_at):
    cluster = grow()
    cluster.request(1)
    cluster.worker("default-1")
    report(cluster, ends_at=ends_at)
    assert bool(released(later(cluster, 0))) == (ends_at < 0)
