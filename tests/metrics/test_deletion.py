"""A deleted experiment leaves nothing, in whatever order the streams are read."""

import pytest

from det_contracts import subjects
from det_contracts.events import scheduler, searcher
from det_contracts.queries import BestValidation, LogPage, Reports, TrialSummaries
from services.metrics import react
from tests.metrics.world import lines, reports, validation

QUERIES = [
    TrialSummaries([1, 2]),
    Reports(trial_ids=[1, 2]),
    LogPage(task_id="1.a"),
    LogPage(task_id="2.a"),
    BestValidation(1, True),
    BestValidation(2, True),
]
PORTION = searcher.TrialsDeleted(1, (1,), ("1.a",), "deleted by bob")
GONE = searcher.ExperimentDeleted(1, "DELETED", "deleted by bob")
AT_ONCE = searcher.ExperimentDeleted(1, "DELETED", "deleted by bob", (1,))
"""As old logs have it."""


@pytest.fixture(params=["in portions", "at once"])
def deleted(request):
    return (AT_ONCE,) if request.param == "at once" else (PORTION, GONE)


def train(world):
    world.add(
        reports(validation([1, 2], loss=[0.5, 0.4]), trial=1, experiment=1),
        reports(validation([1], loss=[0.3]), trial=2, experiment=2),
        lines("of the one that goes", task="1.a"),
        lines("of the one that stays", task="2.a"),
    )
    world.fold().decide()


def test_it_leaves_nothing_and_the_others_stay(world, tables, deleted):
    train(world)
    tables.save(world)
    world.add(*deleted).fold()
    tables.save(world)
    summaries, report_page, gone, kept_log, best, other = [tables.ask(query) for query in QUERIES]
    assert {row["trial_id"] for row in report_page["rows"]} == {2}
    assert (gone["lines"], len(kept_log["lines"])) == ([], 1)
    assert best is None
    assert other is not None
    assert set(world.state.trials) == {2}
    assert not summaries.get("1", {}).get("summary")


@pytest.mark.parametrize("first", [subjects.CONTROL, subjects.REPORTS])
def test_rebuilt_in_any_order_of_streams_it_is_the_same(world, tables, first, deleted):
    train(world)
    world.add(
        *deleted, lines("late", task="1.a", offset=1), reports(validation([3], loss=[1]), number=2)
    ).fold()
    tables.save(world)
    live, state = [tables.ask(query) for query in QUERIES], world.dump()
    tables.drop()
    world.restart()
    while world.step(first):
        pass
    world.fold()
    tables.save(world)
    assert world.dump() == state
    assert [tables.ask(query) for query in QUERIES] == live


def test_a_deletion_that_failed_changes_nothing(world, tables):
    train(world)
    tables.save(world)
    live = [tables.ask(query) for query in QUERIES]
    world.add(searcher.ExperimentDeleted(1, "DELETE_FAILED", "no worker", (1,))).fold()
    tables.save(world)
    assert [tables.ask(query) for query in QUERIES] == live
    # What is reported afterwards counts, too.
    world.add(reports(validation([3], loss=[0.3]), trial=1, experiment=1, number=2)).fold()
    tables.save(world)
    rows = [row for row in tables.ask(Reports(trial_ids=[1]))["rows"] if row["steps_completed"] == 3]
    assert [row["metrics"] for row in rows] == [{"loss": 0.3}]


def test_lines_of_its_other_tasks_go_at_the_end_and_those_of_no_other_experiment(world, tables):
    world.add(
        lines("a checkpoint was deleted", task="1.gc-1"),
        lines("of another", task="10.a"),
        lines("of a task of a person", task="1a"),
    ).fold()
    tables.save(world)
    world.add(PORTION, GONE).fold()
    tables.save(world)
    left = {task: tables.ask(LogPage(task_id=task))["lines"] for task in ("1.gc-1", "10.a", "1a")}
    assert {task: len(log_lines) for task, log_lines in left.items()} == {"1.gc-1": 0, "10.a": 1, "1a": 1}
    assert {key.split(".")[0] for key in world.state.sources} == {"10", "1a"}


def test_many_decisions_about_one_trial_are_stated_in_portions(world, monkeypatch):
    monkeypatch.setattr(react, "AT_ONCE", 4)
    world.add(reports(validation(range(1, 11), loss=[0.5] * 10), trial=1, experiment=1)).fold()
    assert sorted(world.state.findings) == sorted(f"1#{number}" for number in range(1, 11))
    stated = []
    while some := world.pending():
        assert len(some) <= 4
        stated += some
        world.add(*some).fold()
    assert [event.number for event in stated] == list(range(1, 11))
    assert not world.state.findings


def test_the_lines_of_a_forgotten_task_are_deleted(world, tables):
    world.add(lines("a line", task="mine"), lines("a line", task="other")).fold()
    tables.save(world)
    world.add(scheduler.TaskForgotten("mine", 1, "it ended long ago")).fold()
    tables.save(world)
    line_counts = {task: len(tables.ask(LogPage(task_id=task))["lines"]) for task in ("mine", "other")}
    assert line_counts == {"mine": 0, "other": 1}
    assert [key.partition(".")[0] for key in world.state.sources] == ["other"]
