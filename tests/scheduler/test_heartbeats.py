"""Who counts as silent."""

import asyncio
from types import SimpleNamespace

import pytest

from services.scheduler import heartbeats

PATIENCE_S = 25.0


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(at=1000.0)
    monkeypatch.setattr(heartbeats, "since_boot", lambda: now.at)
    return now


@pytest.fixture
def watch(clock):
    return heartbeats.Watch(PATIENCE_S)


def beat(watch, worker_id="w1", session="s1"):
    asyncio.run(watch.on_beat(SimpleNamespace(subject=f"heartbeat.{worker_id}", data=session.encode())))


def after(seconds, clock, watch, cluster):
    """Look every second; who is silent at the end."""
    for _ in range(int(seconds)):
        clock.at += 1.0
        found = watch.silent(cluster.state)
    return [(report.worker_id, report.session) for report in found]


def test_silence_counts_from_the_last_beat(cluster, clock, watch):
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


def test_sessions_that_are_over_are_forgotten(cluster, clock, watch):
    cluster.worker()
    for number in range(50):
        beat(watch, session=f"old-{number}")
    beat(watch)
    after(30, clock, watch, cluster)
    assert watch._heard == {"w1": {"s1": 1000.0}}


def test_nobody_was_silent_while_nobody_listened(cluster, clock, watch):
    cluster.worker()
    after(20, clock, watch, cluster)
    watch.begin_again()
    assert after(25, clock, watch, cluster) == []
    assert after(1, clock, watch, cluster) == [("w1", "s1")]


def test_a_watch_that_stood_still_blames_nobody(cluster, clock, watch):
    cluster.worker()
    after(20, clock, watch, cluster)
    clock.at += 600
    assert after(25, clock, watch, cluster) == []
    assert after(2, clock, watch, cluster) == [("w1", "s1")]
