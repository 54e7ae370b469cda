"""How long an experiment ran, and how many slot hours it held: time queued or paused does not count."""

from __future__ import annotations

from services.catalogue.domain.running_time import running_s, slot_s
from tests.gateway import stories as story

HOUR = 3600.0
LATER = 1e12
"""Long after everything."""


def experiment_of(gateway):
    return gateway.catalogue.state.experiments[1]


def test_only_the_time_counts_during_which_something_ran(gateway):
    gateway.apply(story.created(1), story.trial_created(1), at=0.0)
    gateway.apply(story.run_requested(1), at=100.0)
    assert running_s(experiment_of(gateway), LATER) == 0, "it waits for slots"
    gateway.apply(story.assigned(1), story.started(1), at=500.0)
    assert running_s(experiment_of(gateway), 530.0) == 30
    gateway.apply(story.allocation_ended(1), at=600.0)
    assert running_s(experiment_of(gateway), LATER) == 100, "it is paused"
    gateway.apply(*story.running(1, run=2), at=5000.0)
    assert running_s(experiment_of(gateway), 5007.0) == 107


def test_trials_beside_one_another_count_once_as_time_and_each_as_slot_hours(gateway):
    gateway.apply(story.created(1), story.trial_created(1), story.trial_created(2), at=0.0)
    gateway.apply(story.run_requested(1, slots=2), story.run_requested(2, slots=4), at=0.0)
    gateway.apply(story.started(1), at=0.0).apply(story.started(2), at=HOUR)
    gateway.apply(story.allocation_ended(1), at=2 * HOUR).apply(story.allocation_ended(2), at=4 * HOUR)
    assert running_s(experiment_of(gateway), LATER) == 4 * HOUR
    assert slot_s(experiment_of(gateway), LATER) == (2 * 2 + 4 * 3) * HOUR


def test_a_run_that_never_started_costs_nothing(gateway):
    gateway.apply(story.created(1), story.trial_created(1), story.run_requested(1), at=0.0)
    gateway.apply(story.assigned(1), at=10.0).apply(story.allocation_ended(1), at=99.0)
    assert running_s(experiment_of(gateway), LATER) == slot_s(experiment_of(gateway), LATER) == 0


def test_lists_and_pages_tell_it_and_can_be_sorted_by_it(gateway):
    for id, hours in ((1, 1), (2, 3), (3, 2)):
        gateway.apply(story.created(id), story.trial_created(id, id), *story.running(id, 0, id), at=0.0)
        gateway.apply(story.allocation_ended(id, id), at=hours * HOUR)
    experiment = gateway.get("/api/v1/experiments/2")["experiment"]
    assert (experiment["runningTime"], experiment["slotHours"]) == (3 * HOUR, 3.0)
    assert experiment["duration"] > 1e9, "clients of 0.25 find the whole time since submission there"
    rows = gateway.get("/api/v1/experiments-search", sort="runningTime=desc", lean="true")["experiments"]
    assert [row["experiment"]["id"] for row in rows] == [2, 3, 1]
    named = [column["column"] for column in gateway.get("/api/v1/projects/0/columns")["columns"]]
    assert {"runningTime", "slotHours"} <= set(named)
