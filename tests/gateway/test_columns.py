"""One row of the table of columns makes rows, filters, orders, JSON, the document and the list of columns."""

from __future__ import annotations

import json

import pytest

from services.catalogue.columns import experiments, trials
from services.catalogue.columns.column import INTEGER, Column, columns_by_name, sort_columns
from services.catalogue.listing import EXPERIMENT_SORTS, TRIAL_SORTS
from services.catalogue.store import EXPERIMENTS
from services.rest_routes.present.answers import record_shape
from tests.gateway import stories as story

QUEUED = Column("queuedRuns", "Waiting runs", INTEGER, lambda experiment: experiment.queued)


@pytest.fixture
def one_more(gateway, monkeypatch):
    """A gateway with one more row in its table of columns; experiment 2 has a run that waits."""
    monkeypatch.setitem(experiments.COLUMNS, QUEUED.name, QUEUED)
    gateway.apply(*(story.created(id) for id in (1, 2, 3)))
    gateway.apply(story.trial_created(2, 2), story.run_requested(2, 2))
    return gateway


def search_ids(gateway, **params):
    rows = gateway.get("/api/v1/experiments-search", lean=True, **params)["experiments"]
    return [row["experiment"]["id"] for row in rows]


def test_one_more_row_is_one_more_column(one_more):
    leaf = {"kind": "field", "columnName": "queuedRuns", "operator": ">", "value": 0}
    assert search_ids(one_more, filter=json.dumps({"filterGroup": leaf})) == [2]
    assert search_ids(one_more, sort="queuedRuns=desc,id=asc") == [2, 1, 3]
    answer = {column["column"]: column for column in one_more.get("/api/v1/projects/1/columns")["columns"]}
    assert answer["queuedRuns"] == {
        "column": "queuedRuns",
        "location": "LOCATION_TYPE_EXPERIMENT",
        "type": "COLUMN_TYPE_NUMBER",
        "displayName": "Waiting runs",
        "look": "number",
        "field": "queuedRuns",
    }
    assert one_more.get("/api/v1/experiments/2")["experiment"]["queuedRuns"] == 1
    rows = one_more.get("/api/v1/experiments-search", columns="queuedRuns", sort="id=asc")["experiments"]
    assert [row["values"]["queuedRuns"] for row in rows] == [0, 1, 0]
    assert record_shape("E", experiments.COLUMNS, dict).__annotations__["queuedRuns"] is int


def test_a_row_that_says_how_0_25_calls_its_order_can_be_ordered_by():
    columns = columns_by_name([*experiments.COLUMNS.values()])
    assert sort_columns(columns, EXPERIMENTS).keys() == EXPERIMENT_SORTS.keys()
    without = {name: column for name, column in columns.items() if column.sort != "NUM_TRIALS"}
    assert EXPERIMENT_SORTS.keys() - sort_columns(without, EXPERIMENTS).keys() == {"NUM_TRIALS"}


@pytest.mark.parametrize("columns", [experiments.COLUMNS, trials.COLUMNS], ids=["experiments", "trials"])
def test_no_two_columns_are_called_the_same(columns):
    """Filters take a column's name and its key in JSON alike."""
    for column in columns.values():
        assert [other.name for other in columns.values() if column.name in (other.name, other.key)] == [
            column.name
        ]
    keys = [column.key for column in columns.values() if column.key]
    assert len(keys) == len(set(keys))


def test_the_orders_of_0_25_are_all_there():
    assert EXPERIMENT_SORTS.keys() == {
        "ID", "DESCRIPTION", "START_TIME", "END_TIME", "STATE", "NUM_TRIALS", "USER", "NAME", "FORKED_FROM",
        "RESOURCE_POOL", "PROJECT_ID", "CHECKPOINT_SIZE", "CHECKPOINT_COUNT", "SEARCHER_METRIC_VAL",
    }  # fmt: skip
    assert TRIAL_SORTS.keys() == {
        "ID", "START_TIME", "END_TIME", "STATE", "BEST_VALIDATION_METRIC", "LATEST_VALIDATION_METRIC",
        "BATCHES_PROCESSED", "RESTARTS", "CHECKPOINT_SIZE",
    }  # fmt: skip
