"""What a fold names does not depend on the order of streams: another replica may have read them otherwise."""

import pytest

from det_contracts.envelope import Recorded
from det_contracts.events import metrics, searcher
from det_contracts.reports import ReportBatch, Series
from services.metrics.app import RULES
from services.metrics.domain import JudgedBatch, LogLines

GONE = searcher.ExperimentDeleted(1, "DELETED", "deleted by bob")
STATED = metrics.Validated(trial_id=1, number=1, run=1, steps_completed=3, metric=0.5, reported_at=0.0)


def named(state, event):
    return set(RULES.evolve(state, Recorded(1, event, "id", "test", 0.0)))


def batch():
    series = [Series("validation", [3], [0.0], {"loss": [0.5]})]
    return ReportBatch(
        trial_id=1,
        experiment_id=1,
        run=1,
        number=1,
        searcher_metric="loss",
        smaller_is_better=True,
        series=series,
    )


def lines(offset):
    return LogLines(
        task_id="1.a",
        allocation_id="1.a.1",
        worker_id="w",
        source="task",
        offset=offset,
        count=1,
        lines=b"[]",
    )


def test_a_finding_is_named_whether_the_report_or_the_decision_came_first():
    first, second = RULES.state(), RULES.state()
    assert ("findings", "1#1") in named(first, JudgedBatch(batch())) & named(first, STATED)
    assert ("findings", "1#1") in named(second, STATED)


def test_reports_of_what_is_deleted_are_named():
    state = RULES.state()
    named(state, GONE)
    assert named(state, JudgedBatch(batch())) == {("trials", 1), ("groups", "1/validation")}
    assert not state.trials


@pytest.mark.parametrize(("offset", "keys"), [(7, {("sources", "1.a.1 w task")}), (-1, set())])
def test_lines_of_what_is_deleted_are_named_where_they_are_counted(offset, keys):
    before, after = RULES.state(), RULES.state()
    assert named(before, JudgedBatch(lines(offset))) == keys
    assert set(before.sources) == {id for _, id in keys}
    named(after, GONE)
    assert named(after, JudgedBatch(lines(offset))) == keys
    assert not after.sources
