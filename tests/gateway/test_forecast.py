"""When jobs would start, at the present pace."""

from __future__ import annotations

from det_contracts.events import scheduler, searcher
from det_contracts.events.scheduler import PoolSettings
from services.catalogue.peers import Job, PoolRow
from services.rest_routes.cluster.forecast import ForecastInput, remaining_s, start_times
from tests.gateway import stories as story


def pool(slots, used, name="p"):
    return PoolRow(name, "", PoolSettings(), workers=1, slots=slots, slots_used=used, aux_used=0, jobs=0)


def job(owner, **fields):
    return ForecastInput(owner=owner, pool="p", **fields)


def test_what_is_free_starts_at_once_and_the_next_when_somebody_ends():
    jobs = [job(1, holds=2, left_s=60.0), job(2, needs=2), job(3, needs=2)]
    assert start_times(jobs, [pool(4, 2)]) == {2: 0.0, 3: 60.0}


def test_no_start_time_is_forecast_where_none_is_known():
    jobs = [job(1, holds=4), job(2, needs=1), job(3, needs=1)]
    assert start_times(jobs, [pool(4, 4)]) == {}


def test_who_waits_begins_after_those_before_it():
    jobs = [job(1, holds=1, left_s=10.0), job(2, holds=3, left_s=90.0), job(3, needs=4), job(4, needs=1)]
    starts = start_times(jobs, [pool(4, 4)])
    assert starts == {3: 90.0}, "the one behind it would need to know how long that runs"


def test_what_can_never_start_stands_in_nobodys_way():
    assert start_times([job(1, needs=64), job(2, needs=1)], [pool(4, 0)]) == {2: 0.0}


def test_what_waits_and_has_run_before_gives_its_slots_back_in_time():
    jobs = [job(1, needs=1, left_s=30.0), job(2, needs=1)]
    assert start_times(jobs, [pool(1, 0)]) == {1: 0.0, 2: 30.0}


def test_other_pools_do_not_matter():
    jobs = [job(1, needs=1), ForecastInput(owner=2, pool="q", needs=1)]
    assert start_times(jobs, [pool(1, 0), pool(1, 1, "q")]) == {1: 0.0}


def test_the_queue_says_when_and_a_preview_says_what_a_move_would_do(gateway):
    settings = scheduler.PoolSettings(scheduler="priority")
    gateway.apply(scheduler.PoolConfigured(pool="default", settings=settings, reason="configured"))
    large = story.created(1, resources={"slots_per_trial": 64})
    gateway.apply(story.worker_here(), large, story.created(2), story.created(3))
    for id in (1, 2, 3):
        gateway.apply(story.trial_created(id, id), story.run_requested(id, id, slots=64 if id == 1 else 1))
    jobs = {queued_job["jobId"]: queued_job for queued_job in gateway.get("/api/v1/job-queues")["jobs"]}
    assert jobs["experiment-1"]["startsIn"] is None, "its pool can never hold it"
    assert not jobs["experiment-1"]["canStart"]
    assert jobs["experiment-2"]["canStart"]
    assert jobs["experiment-2"]["startsIn"] == 0
    assert jobs["experiment-2"]["endsIn"] is None
    body = {"jobId": "experiment-3", "aheadOf": "experiment-2"}
    preview = gateway.send("POST", "/api/v1/job-queues/preview", body).json()
    assert preview["startsIn"] == 0
    assert gateway.peers.commands == [], "nothing was asked for"
    message = gateway.refused(404, "POST", "/api/v1/job-queues/preview", {"jobId": "nonsense", "priority": 3})
    assert "job 'nonsense' not found" in message


def test_an_experiment_says_like_the_queue_that_it_cannot_start(gateway):
    large = story.created(1, resources={"slots_per_trial": 64})
    gateway.apply(story.worker_here(), large, story.created(2), story.created(3))
    for id in (1, 2):
        gateway.apply(story.trial_created(id, id), story.run_requested(id, id, slots=64 if id == 1 else 1))
        gateway.apply(searcher.ExperimentActivated(experiment_id=id, reason="go"))
    queue = {
        int(queued_job["entityId"]): queued_job["canStart"]
        for queued_job in gateway.get("/api/v1/job-queues")["jobs"]
    }
    assert queue == {1: False, 2: True}
    everyone = queue | {3: True}
    single = {id: gateway.get(f"/api/v1/experiments/{id}")["experiment"] for id in everyone}
    assert {id: experiment["canStart"] for id, experiment in single.items()} == everyone
    listed = gateway.get("/api/v1/experiments", lean="true")["experiments"]
    assert {experiment["id"]: experiment["canStart"] for experiment in listed} == everyone
    rows = gateway.get("/api/v1/experiments-search", lean="true")["experiments"]
    assert {row["experiment"]["id"]: row["experiment"]["canStart"] for row in rows} == everyone


def test_time_left_goes_by_the_time_that_it_ran_without_its_pauses(gateway):
    """Half done after 100 s of work and a pause of a day: 100 s are left."""
    gateway.apply(story.created(1), story.trial_created(1))
    gateway.apply(*story.running(1), at=1000.0).apply(story.allocation_ended(1), at=1060.0)
    day = 1060.0 + 86_400
    gateway.apply(*story.running(1, run=2), at=day)
    state, row = gateway.catalogue.state, Job(1, "default", "SCHEDULED", 1, 1.0, None, 0.0, 1, 1, -1, "")
    assert remaining_s(row, state, {1: 0.5}, day + 40) == 100.0
    assert remaining_s(row, state, {1: 0.001}, day + 40) is None, "too little is done"
