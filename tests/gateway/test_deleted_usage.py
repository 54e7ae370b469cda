"""What an experiment used stays counted for its owner after it, or some of its trials, are deleted."""

import time

import pytest

from det_contracts.events import searcher
from services.kit import pager
from services.kit.roots import get_loaded
from tests.gateway import stories
from tests.gateway.harness import Harness

DAY = 24 * 3600.0
NOW = time.time() // 1
BEGAN = (NOW // DAY - 120) * DAY + DAY / 2
"""At noon: its hours lie in one day."""
WHOLE = {"timestampAfter": "2023-01-01T00:00:00Z", "timestampBefore": "2090-01-01T00:00:00Z"}
LABELS = {"labels": ["fruit"]}
RUN = f"{stories.task(1)}.1"


def lived():
    """Two trials, one after the other: each held a slot for an hour."""
    yield BEGAN, stories.worker_here()
    yield BEGAN, stories.created(1, **LABELS)
    yield BEGAN, searcher.ExperimentActivated(1, "submitted")
    for id in (1, 2):
        at = BEGAN + 3600 * id
        yield BEGAN, stories.trial_created(id)
        for event in (stories.run_requested(id), stories.assigned(id), stories.started(id)):
            yield at, event
        yield at + 3600, stories.allocation_ended(id)
        yield at + 3600, stories.trial_ended(id)
    yield BEGAN + DAY / 3, searcher.ExperimentEnded(1, "COMPLETED", "done")


def some_deleted():
    yield searcher.TrialsDeleted(experiment_id=1, trial_ids=(1,), task_ids=(stories.task(1),), reason="asked")


def deleted(trial_ids=(1, 2)):
    yield searcher.ExperimentDeleting(1, "asked")
    yield searcher.ExperimentDeleted(experiment_id=1, trial_ids=trial_ids, state="DELETED", reason="done")


@pytest.fixture
def aged(tmp_path, monkeypatch):
    """A gateway that keeps nothing in memory that may leave it."""
    monkeypatch.setattr(pager, "MAX_IDLE_RECORDS", 0)
    harness = Harness(tmp_path)
    harness.let_in()
    for at, event in lived():
        harness.run(harness.append(event, at=at))
    harness.settle()
    yield harness
    harness.close()


def reports(gateway):
    """All reports of what was used, without the name of what used it."""
    days = {"startDate": time.strftime("%Y-%m-%d", time.gmtime(BEGAN)), "endDate": "2090-01-01"}
    summed = gateway.get("/api/v1/resources/allocation/aggregated", **days, period="MONTHLY")
    raw = gateway.get("/api/v1/resources/allocation/raw", **WHOLE)["resourceEntries"]
    return {
        "summed": summed["resourceEntries"],
        "raw": [entry | {"experimentId": None} for entry in raw],
        "hours": gateway.get("/api/v1/cluster/usage", days=200)["usage"],
        "csv": gateway.send("GET", "/resources/allocation/allocations-csv", params=WHOLE).text.replace(
            ",1,1,", ",,1,"
        ),
        "strips": sum(len(slot["runs"]) for slot in gateway.get("/api/v1/cluster/slots", days=200)["slots"]),
    }


@pytest.mark.parametrize(
    "deletions",
    [lambda: deleted(), some_deleted, lambda: (*some_deleted(), *deleted((2,)))],
    ids=["the experiment", "a trial", "a trial, and then the experiment"],
)
def test_reports_count_it_as_before(aged, deletions):
    before = reports(aged)
    (month,) = before["summed"]
    assert (month["byUsername"], month["byExperimentLabel"]) == ({"determined": 7200.0}, {"fruit": 7200.0})
    assert (len(before["raw"]), before["strips"]) == (2, 2)
    aged.apply(*deletions(), at=NOW)
    assert reports(aged) == before


def test_nothing_else_of_it_is_left(aged):
    aged.apply(*deleted(), at=NOW)
    for path in ("experiments/1", "trials/1", f"tasks/{stories.task(1)}", f"allocations/{RUN}"):
        assert aged.send("GET", f"/api/v1/{path}").status_code == 404, path
    (slot,) = [slot for slot in aged.get("/api/v1/cluster/slots", days=200)["slots"] if slot["runs"]]
    assert [run["name"] for run in slot["runs"]] == [
        "deleted experiment 1, trial 1",
        "deleted experiment 1, trial 2",
    ]


def test_the_task_of_a_deleted_trial_is_not_found(aged):
    path = f"/api/v1/tasks/{stories.task(1)}"
    assert aged.send("GET", path).status_code == 200
    aged.apply(*some_deleted(), at=NOW)
    assert aged.send("GET", path).status_code == 404


def test_its_runs_leave_the_memory(aged):
    aged.apply(*deleted(), at=NOW)
    for number in range(3):
        aged.apply(stories.worker_here(session=f"s-{number}"), at=NOW)
    assert get_loaded(aged.catalogue.state.allocations, RUN) is None
    brought = aged.runner.pager.roots_loaded
    assert len(reports(aged)["raw"]) == 2
    assert aged.runner.pager.roots_loaded == brought, "reports read rows, and bring no records back"


def test_what_never_held_a_slot_leaves_nothing(aged):
    aged.apply(stories.created(2), searcher.ExperimentActivated(2, "r"), stories.trial_created(3, 2), at=NOW)
    aged.apply(stories.run_requested(3, 2), at=NOW)
    aged.apply(
        searcher.ExperimentDeleted(experiment_id=2, trial_ids=(3,), state="DELETED", reason="done"), at=NOW
    )
    assert 2 not in aged.catalogue.state.deleted_experiments
    assert f"{stories.task(3, 2)}.1" not in aged.catalogue.state.allocations
