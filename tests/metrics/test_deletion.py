"""A deleted experiment leaves nothing, in whatever order the streams are read."""

import pytest

from det_contracts import subjects
from det_contracts.events import searcher
from det_contracts.queries import BestValidation, LogPage, Reports, TrialSummaries
from tests.metrics.world import lines, reports, validation

QUERIES = [
    TrialSummaries([1, 2]),
    Reports(trial_ids=[1, 2]),
    LogPage(task_id="1.a"),
    LogPage(task_id="2.a"),
    BestValidation(1, True),
    BestValidation(2, True),
]
DELETED = searcher.ExperimentDeleted(1, "DELETED", "deleted by bob", (1,))


def train(world):
    world.add(
        reports(validation([1, 2], loss=[0.5, 0.4]), trial=1, experiment=1),
        reports(validation([1], loss=[0.3]), trial=2, experiment=2),
        lines("of the one that goes", task="1.a"),
        lines("of the one that stays", task="2.a"),
    )
    world.fold().decide()


def test_it_leaves_nothing_and_the_others_stay(world, tables):
    train(world)
    tables.save(world)
    world.add(DELETED).fold()
    tables.save(world)
    summaries, found, gone, kept, best, other = [tables.ask(query) for query in QUERIES]
    assert {row["trial_id"] for row in found["rows"]} == {2}
    assert (gone["lines"], len(kept["lines"])) == ([], 1)
    assert best is None
    assert other is not None
    assert set(world.state.trials) == {2}
    assert not summaries.get("1", {}).get("summary")


@pytest.mark.parametrize("first", [subjects.CONTROL, subjects.REPORTS])
def test_rebuilt_in_any_order_of_streams_it_is_the_same(world, tables, first):
    train(world)
    world.add(
        DELETED, lines("late", task="1.a", offset=1), reports(validation([3], loss=[1]), number=2)
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
