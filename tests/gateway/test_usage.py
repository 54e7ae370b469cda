"""How slots were used, and which workers are away."""

import time

import pytest

from det_contracts import queries
from det_contracts.events import scheduler, searcher
from services.catalogue import usage_days
from tests.gateway import stories

HOUR = 3600.0


@pytest.fixture
def used(gateway):
    """Trial 1 of experiment 1 (labels a, b) held slot 0 for an hour, ending an hour ago."""
    now = time.time()
    for ago, events in (
        (2 * HOUR, [stories.worker_here(), stories.created(1, labels=["a", "b"]), stories.trial_created(1)]),
        (2 * HOUR, [searcher.ExperimentActivated(1, "asked"), *stories.running(1)]),
        (HOUR, [stories.allocation_ended(1)]),
    ):
        gateway.apply(*events, at=now - ago)
    return gateway


def test_strips_tell_what_ran_on_each_slot(used):
    (slot,) = used.get("/api/v1/cluster/slots")["slots"]
    assert (slot["agentId"], slot["slotId"]) == ("w-1", "0")
    (run,) = slot["runs"]
    assert (run["trialId"], run["experimentId"], run["outcome"]) == (1, 1, "succeeded")
    assert "days must be from 1" in used.refused(400, "GET", "/api/v1/cluster/slots", params={"days": 0})


def test_hours_are_summed_by_day_user_and_label(used):
    rows = used.get("/api/v1/cluster/usage")["usage"]
    assert {row["label"] for row in rows} == {"a", "b"}
    assert {row["user"] for row in rows} == {"determined"}
    assert sum(row["slotHours"] for row in rows) == pytest.approx(1.0, abs=0.01)


def test_a_run_over_midnight_counts_on_both_days(gateway):
    midnight = time.time() // usage_days.DAY_S * usage_days.DAY_S - usage_days.DAY_S
    gateway.apply(stories.worker_here(), stories.created(1), stories.trial_created(1), at=midnight - 700)
    gateway.apply(*stories.running(1), at=midnight - 600)
    gateway.apply(stories.allocation_ended(1), at=midnight + 1200)
    second, first = gateway.get("/api/v1/cluster/usage", days=3)["usage"]
    assert second["day"] > first["day"]
    assert [day["slotHours"] for day in (first, second)] == pytest.approx([600 / 3600, 1200 / 3600])


def test_a_lost_worker_stays_with_what_became_of_its_trials(used):
    used.apply(*stories.running(1, run=2), at=time.time() - 60)
    used.apply(scheduler.WorkerLost("w-1", "no sign of life for 30 s"), at=time.time() - 30)
    assert used.get("/api/v1/agents")["agents"] == []
    (gone,) = used.get("/api/v1/cluster/away")["agents"]
    assert (gone["id"], gone["reason"], gone["slots"]) == ("w-1", "no sign of life for 30 s", 2)
    assert [run["trialId"] for run in gone["runs"]] == [1]
    used.apply(stories.worker_here(session="s-2"))
    assert used.get("/api/v1/cluster/away")["agents"] == []


def test_usage_is_listed_by_slot_and_by_process(gateway):
    gateway.apply(stories.worker_here(), stories.created(1), stories.trial_created(1), *stories.running(1))
    last = {
        "cpu_cores.rank0": 2.5,
        "memory_gb.rank0": 4.0,
        "gpu_percent.w-1.0": 91.0,
        "gpu_memory_gb.w-1.0": 30.0,
        "gpu_percent.w-1.7": 5.0,
        "gpu_memory_gb.rank0": 29.0,
    }
    summary = {"profile.process": {name: {"last": value} for name, value in last.items()}}
    gateway.peers.values[queries.TrialSummaries] = {"1": {"summary": summary}}
    (run,) = gateway.get("/api/v1/cluster/use")["uses"]
    assert run["gpus"] == [{"agentId": "w-1", "slotId": "0", "percent": 91.0, "memoryGb": 30.0}]
    (process,) = run["processes"]
    assert process == {
        "name": "rank0",
        "agentId": "w-1",
        "cpuCores": 2.5,
        "memoryGb": 4.0,
        "gpuMemoryGb": 29.0,
    }
    assert (run["experimentId"], run["trialId"]) == (1, 1)


def test_what_is_not_sampled_uses_nothing_that_is_known(used):
    assert used.get("/api/v1/cluster/use")["uses"] == [], "its run is over"
