"""What a user's task used stays counted for its owner after the task itself is forgotten."""

import time

import pytest

from det_contracts.envelope import Recorded
from det_contracts.events import scheduler, worker
from services.catalogue.domain import State, evolve
from services.catalogue.visibility import Visibility
from services.kit import pager
from services.kit.roots import get_loaded
from services.kit.snapshot_store import DatabaseSaver
from tests.gateway import stories
from tests.gateway.harness import Harness

DAY = 24 * 3600.0
NOW = time.time() // 1
BEGAN = (NOW // DAY - 120) * DAY + DAY / 2
"""At noon: its two hours lie in one day."""
WHOLE = {"timestampAfter": "2023-01-01T00:00:00Z", "timestampBefore": "2090-01-01T00:00:00Z"}
KEPT = "nb-1"
WITHOUT_SLOTS, NEVER_PLACED = "tb-2", "cmd-3"


def submitted(id, number, slots=1):
    return scheduler.TaskSubmitted(
        task_id=id,
        number=number,
        kind="NOTEBOOK",
        user="determined",
        name="explore",
        config={"entrypoint": ["jupyter", "lab"]},
        slots=slots,
        pool="default",
        workspace_id=1,
        reason="submitted by determined",
    )


def placed(id, number, slots=(0,)):
    return scheduler.AllocationAssigned(
        allocation_id=f"{id}.1",
        task_id=id,
        kind="NOTEBOOK",
        parts=(scheduler.Part("w-1", slots, 0),),
        experiment_id=-number,
        run=1,
        reason="",
    )


def ended(id):
    return scheduler.AllocationEnded(
        allocation_id=f"{id}.1", kind="NOTEBOOK", run=1, outcome="succeeded", reason=""
    )


def lived():
    """Three tasks, and when each thing happened: one used a slot for two hours, two used none."""
    yield BEGAN, stories.worker_here()
    for number, (id, slots) in enumerate(((KEPT, 1), (WITHOUT_SLOTS, 0), (NEVER_PLACED, 1)), 1):
        yield BEGAN, submitted(id, number, slots)
    for id, number, slots in ((KEPT, 1, (0,)), (WITHOUT_SLOTS, 2, ())):
        yield BEGAN, placed(id, number, slots)
        yield BEGAN, worker.AllocationStarted("w-1", f"{id}.1")
    for id in (KEPT, WITHOUT_SLOTS, NEVER_PLACED):
        yield BEGAN + 7200, ended(id)


def forgotten():
    """All three are forgotten."""
    for number, id in enumerate((KEPT, WITHOUT_SLOTS, NEVER_PLACED), 1):
        yield scheduler.TaskForgotten(id, number, "it ended long ago")


def with_events(gateway, events):
    for at, event in events:
        gateway.run(gateway.append(event, at=at))
    gateway.settle()
    return gateway


@pytest.fixture
def aged(tmp_path, monkeypatch):
    """A gateway that keeps nothing in memory that may leave it."""
    monkeypatch.setattr(pager, "MAX_IDLE_RECORDS", 0)
    harness = Harness(tmp_path)
    harness.let_in()
    yield with_events(harness, lived())
    harness.close()


def reports(gateway):
    period_query = {"startDate": time.strftime("%Y-%m-%d", time.gmtime(BEGAN)), "endDate": "2090-01-01"}
    summed = gateway.get("/api/v1/resources/allocation/aggregated", **period_query, period="MONTHLY")
    entries = gateway.get("/api/v1/resources/allocation/raw", **WHOLE)["resourceEntries"]
    (shown,) = [entry for entry in entries if entry["slots"]]
    seconds = sum(entry["byUsername"].get("determined", 0) for entry in summed["resourceEntries"])
    hours = gateway.get("/api/v1/cluster/usage", days=200)["usage"]
    return seconds, shown, {(row["user"], row["label"]): row["slotHours"] for row in hours}


def test_reports_count_it_for_its_owner_as_before(aged):
    before = reports(aged)
    assert (before[0], before[1]["username"], before[2]) == (
        7200,
        "determined",
        {("determined", "(none)"): 2.0},
    )
    aged.apply(*forgotten(), at=NOW)
    assert reports(aged) == before
    (row,) = aged.send("GET", "/resources/allocation/allocations-csv", params=WHOLE).text.splitlines()[1:]
    assert "determined,Uncategorized" in row
    (slot,) = aged.get("/api/v1/cluster/slots", days=200)["slots"]
    assert [run["name"] for run in slot["runs"]] == [KEPT]


def test_nothing_else_of_it_is_left(aged):
    aged.apply(*forgotten(), at=NOW)
    for path in (f"tasks/{KEPT}", f"commands/{KEPT}", f"notebooks/{KEPT}", f"allocations/{KEPT}.1"):
        assert aged.send("GET", f"/api/v1/{path}").status_code == 404, path
    assert aged.get("/api/v1/tasks")["allocationIdToSummary"] == {}
    state = aged.catalogue.state
    assert not state.tasks
    assert not {f"{WITHOUT_SLOTS}.1", f"{NEVER_PLACED}.1"} & set(dict.keys(state.allocations))


def test_its_run_leaves_the_memory_then_and_no_earlier(aged):
    for number in range(3):
        aged.apply(stories.worker_here(session=f"s-{number}"), at=NOW)
    assert get_loaded(aged.catalogue.state.allocations, f"{KEPT}.1") is not None
    aged.apply(*forgotten(), at=NOW)
    for number in range(3, 6):
        aged.apply(stories.worker_here(session=f"s-{number}"), at=NOW)
    assert get_loaded(aged.catalogue.state.allocations, f"{KEPT}.1") is None
    brought = aged.runner.pager.roots_loaded
    assert reports(aged)[0] == 7200
    assert aged.runner.pager.roots_loaded == brought, "reports read rows, and bring no records back"


def test_a_new_task_is_not_looked_for_in_the_database(aged, monkeypatch):
    looked = []
    monkeypatch.setattr(DatabaseSaver, "pages_blocking", lambda _, *looked_for: looked.append(looked_for))
    aged.apply(submitted("new", 9), at=NOW)
    assert looked == []


def test_those_who_may_not_see_its_workspace_do_not_see_its_run():
    state = State()
    everything = [*lived(), *((NOW, event) for event in forgotten())]
    for position, (at, event) in enumerate(everything, 1):
        list(evolve(state, Recorded(position, event, "", "", at, "", "CONTROL")))
    (run,) = state.allocations.values()
    assert (run.task_owner.user, run.task_owner.workspace_id) == ("determined", 1)
    visible = Visibility.__new__(Visibility)
    visible._state, visible.includes_everything = state, False
    for spaces, expected in ((frozenset({2}), False), (frozenset({1}), True)):
        visible._workspace_ids = spaces
        assert visible.includes_allocation(run) is expected


def test_it_may_be_forgotten_twice():
    state = State()
    everything = [*lived(), *((NOW, event) for event in (*forgotten(), *forgotten()))]
    for position, (at, event) in enumerate(everything, 1):
        list(evolve(state, Recorded(position, event, "", "", at, "", "CONTROL")))
    assert set(state.allocations) == {f"{KEPT}.1"}
