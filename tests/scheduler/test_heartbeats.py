"""Who counts as silent."""

import asyncio
from types import SimpleNamespace

import pytest

from services.scheduler import heartbeats


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(at=1000.0)
    monkeypatch.setattr(heartbeats.time, "monotonic", lambda: now.at)
    return now


def beat(watch, worker_id="w1"):
    asyncio.run(watch.on_beat(SimpleNamespace(subject=f"heartbeat.{worker_id}")))


def silent(watch, cluster):
    return [(report.worker_id, report.session) for report in watch.silent(cluster.state)]


def test_silence_counts_from_the_last_beat(cluster, clock):
    cluster.worker()
    watch = heartbeats.Watch(25.0)
    assert silent(watch, cluster) == []
    clock.at += 20
    beat(watch)
    clock.at += 20
    assert silent(watch, cluster) == []
    clock.at += 6
    assert silent(watch, cluster) == [("w1", "s1")]


def test_a_watch_that_just_began_knows_of_no_silence(cluster, clock):
    cluster.worker()
    watch = heartbeats.Watch(25.0)
    assert silent(watch, cluster) == []


def test_a_registration_is_a_sign_of_life(cluster, clock):
    cluster.worker()
    watch = heartbeats.Watch(25.0)
    clock.at += 30
    assert silent(watch, cluster) == []
    clock.at += 26
    assert silent(watch, cluster) == [("w1", "s1")]
    cluster.worker(session="s2")
    assert silent(watch, cluster) == []
    clock.at += 26
    assert silent(watch, cluster) == [("w1", "s2")]
