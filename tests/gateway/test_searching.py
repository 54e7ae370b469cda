"""Experiments by filter, labels, columns (REST spec, section 3)."""

from __future__ import annotations

import json

import pytest

from det_contracts import queries
from services.catalogue import search
from services.catalogue.columns.values import MAX_CACHED
from services.rest_routes.experiments.searching import MAX_METRICS
from tests.gateway import stories as story

FIND = "/api/v1/experiments-search"


@pytest.fixture
def three(gateway):
    """1 and 3 are good; 2 is archived; 3 is in another project."""
    lr = {"lr": {"type": "const", "val": 0.1}}
    gateway.apply(
        story.created(1, name="alpha", labels=["good", "a"], hyperparameters=lr),
        story.created(2, name="beta", labels=["bad"], user="admin"),
        story.created(3, name="Gamma", labels=["good"]),
        story.trial_created(1),
        story.validated(1, 10, 0.5),
    )
    return gateway


def leaf(column, operator, value=None):
    return {"kind": "field", "columnName": column, "operator": operator, "value": value}


def group(conjunction, *children, **more):
    inner = {"kind": "group", "conjunction": conjunction, "children": list(children)}
    return {"filterGroup": inner, **more}


def matching_ids(gateway, wanted=None, **params):
    if wanted is not None:
        params["filter"] = json.dumps(wanted)
    rows = gateway.get("/api/v1/experiments-search", **params)["experiments"]
    return [row["experiment"]["id"] for row in rows]


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (None, [3, 2, 1]),
        (group("and"), [3, 2, 1]),
        (group("and", leaf("name", "contains", "A")), [3, 2, 1]),
        (group("and", leaf("name", "=", "gamma")), [3]),
        (group("and", leaf("name", "!=", "gamma")), [2, 1]),
        (group("and", leaf("tags", "contains", "good"), leaf("id", "<", 3)), [1]),
        (group("or", leaf("tags", "contains", "bad"), leaf("id", ">=", 3)), [3, 2]),
        (group("and", leaf("user", "=", "admin")), [2]),
        (group("and", leaf("state", "=", "STATE_PAUSED")), [3, 2, 1]),
        (group("and", leaf("searcherMetricsVal", "notEmpty")), [1]),
        (group("and", leaf("searcherMetricsVal", "isEmpty")), [3, 2]),
        (group("and", leaf("hp.lr", "=", 0.1)), [1]),
        (group("and", leaf("hp.lr", ">", 0.05)), [1]),
        (group("and", leaf("name", ">", 5)), []),
        (group("and", leaf("startTime", ">", "2023-11-01")), [3, 2, 1]),
        (group("and", leaf("startTime", ">", "2024-11-01T00:00:00Z")), []),
        (group("and", leaf("id", "<", "3")), [2, 1]),
        (group("and", group("or", leaf("id", "=", 1), leaf("id", "=", 2))["filterGroup"]), [2, 1]),
    ],
)
def test_filters(three, wanted, ids):
    assert matching_ids(three, wanted) == ids


@pytest.mark.parametrize(
    ("sort", "ids"),
    [
        ("id=asc", [1, 2, 3]),
        ("name=desc", [3, 2, 1]),
        ("searcherMetricsVal=asc,id=desc", [1, 3, 2]),
        ("user=asc,id=asc", [2, 1, 3]),
    ],
)
def test_orders(three, sort, ids):
    assert matching_ids(three, sort=sort) == ids


def test_pages_and_best_trials(three):
    page = three.get("/api/v1/experiments-search", limit=1, offset=2)
    assert page["pagination"] == {"offset": 2, "limit": 1, "startIndex": 2, "endIndex": 3, "total": 3}
    (row,) = page["experiments"]
    assert (row["experiment"]["id"], row["bestTrial"]["id"]) == (1, 1)
    assert three.get("/api/v1/experiments-search")["experiments"][0]["bestTrial"] is None


def test_archived_ones_are_left_out_on_demand(three):
    from det_contracts.events import searcher

    three.apply(searcher.ExperimentArchived(2, True, "asked"))
    assert matching_ids(three, group("and", showArchived=False)) == [3, 1]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("{", "this is not valid JSON"),
        ("[]", "a JSON object is expected"),
        (json.dumps(group("and", leaf("name", "like", "x"))), "operator must be one of"),
        (json.dumps(group("nor", leaf("name", "=", "x"))), "conjunction must be and or or"),
        (json.dumps(group("and", 3)), "an object with the key kind"),
    ],
)
def test_filters_that_make_no_sense(three, wanted, message):
    answer = three.refused(400, "GET", "/api/v1/experiments-search", params={"filter": wanted})
    assert message in answer


def test_a_tree_that_is_too_deep_is_refused():
    tree = {"kind": "group", "children": []}
    for _ in range(50):
        tree = {"kind": "group", "children": [tree]}
    with pytest.raises(Exception, match="deep"):
        search.parse(json.dumps({"filterGroup": tree}))


def test_an_order_that_makes_no_sense(three):
    message = three.refused(400, "GET", "/api/v1/experiments-search", params={"sort": "id=up"})
    assert "COLUMN=asc" in message


def test_labels_by_use(three):
    assert three.get("/api/v1/experiment/labels")["labels"] == ["good", "a", "bad"]
    assert three.get("/api/v1/experiment/labels", projectId=9)["labels"] == []


def test_columns(three):
    columns = three.get("/api/v1/projects/1/columns")["columns"]
    names = {column["column"]: column["location"] for column in columns}
    assert names["name"] == "LOCATION_TYPE_EXPERIMENT"
    assert names["hp.lr"] == "LOCATION_TYPE_HYPERPARAMETERS"
    three.refused(404, "GET", "/api/v1/projects/9/columns")


def test_unknown_columns_are_refused(three):
    message = three.refused(
        400,
        "GET",
        "/api/v1/experiments-search",
        params={"filter": json.dumps(group("and", leaf("colour", "=", "x")))},
    )
    assert "no column 'colour'" in message
    assert "searcherMetricsVal" in message


def test_active_is_whatever_an_active_experiment_does(three):
    from det_contracts.events import searcher

    three.apply(searcher.ExperimentActivated(1, "asked"), story.run_requested(1))
    assert matching_ids(three, group("and", leaf("state", "=", "ACTIVE"))) == [1]
    assert matching_ids(three, group("and", leaf("state", "=", "QUEUED"))) == [1]


def test_rows_hold_the_columns_that_are_asked_for(three):
    page = three.get("/api/v1/experiments-search", lean=True, columns="hp.lr,metric.loss,tags", sort="id=asc")
    first = page["experiments"][0]
    assert first["values"] == {"hp.lr": 0.1, "metric.loss": 0.5, "tags": ["a", "good"]}
    assert first["bestTrial"] is None
    assert first["experiment"]["config"] == {}


def test_hyperparameters_that_are_searched_for_are_those_of_the_best_trial(gateway):
    lr = {"lr": {"type": "double", "minval": 0, "maxval": 1}, "layers": [1, 2]}
    gateway.apply(
        story.created(1, hyperparameters=lr),
        story.trial_created(1, lr=0.25),
        story.trial_created(2, lr=0.75),
        story.validated(2, 10, 0.5),
    )
    assert matching_ids(gateway, group("and", leaf("hp.lr", ">", 0.5))) == [1]
    gateway.apply(story.validated(1, 10, 0.1))
    assert matching_ids(gateway, group("and", leaf("hp.lr", ">", 0.5))) == []
    assert matching_ids(gateway, group("and", leaf("hp.layers", "contains", "2"))) == [1]


def test_other_metrics_come_from_the_metrics_service_and_settled_ones_are_asked_for_once(three):
    from det_contracts import queries
    from det_contracts.events import metrics, searcher

    questions = []

    def answer(query):
        questions.append((query.group, query.name, query.trial_ids))
        return [[id, {"last": 7.0, "min": 3.0}] for id in query.trial_ids]

    three.peers.values[queries.TrialStatistics] = answer
    wanted = group("and", leaf("validation.a.b.min", "=", 3))
    assert matching_ids(three, wanted) == [1]
    assert matching_ids(three, group("and", leaf("metric.acc", "=", 7))) == [1]
    assert questions == [("validation", "a.b", [1]), ("validation", "acc", [1])]
    three.apply(
        searcher.TrialEnded(trial_id=1, state="COMPLETED", restarts=0, reason=""),
        metrics.Settled(trial_id=1, reason=""),
        searcher.ExperimentEnded(1, "COMPLETED", ""),
    )
    for _ in range(3):
        assert matching_ids(three, wanted) == [1]
    assert len(questions) == 3


def test_columns_tell_of_metrics_and_of_nested_hyperparameters(gateway):
    from det_contracts import queries

    gateway.apply(story.created(1, hyperparameters={"opt": {"lr": 0.1}}))
    gateway.peers.values[queries.MetricNames] = {"validation": ["loss"]}
    names = [column["column"] for column in gateway.get("/api/v1/projects/1/columns")["columns"]]
    assert {"hp.opt.lr", "validation.loss.min", "validation.loss.mean"} <= set(names)


def test_ranges_of_metrics_over_the_experiments_of_a_project(gateway):
    from det_contracts import queries

    def statistics(low, high):
        others = {"words": {"last": "x"}, "beyond": {"last": 10**400}, "flag": {"last": True}}
        return {"loss": {"min": low, "max": high, "last": low, "mean": "NaN"}} | others

    gateway.apply(*(e for id in (1, 2, 3) for e in (story.created(id), story.trial_created(id, id))))
    gateway.peers.values[queries.TrialSummaries] = lambda query: {
        str(id): {"summary": {"validation": statistics(id / 10, id)}} for id in query.trial_ids
    }
    assert gateway.get("/api/v1/projects/1/experiments/metric-ranges")["ranges"] == [
        {"metricsName": "validation.loss.last", "min": 0.1, "max": 0.3},
        {"metricsName": "validation.loss.max", "min": 1, "max": 3},
        {"metricsName": "validation.loss.min", "min": 0.1, "max": 0.3},
    ]
    assert "project '9' not found" in gateway.refused(
        404, "GET", "/api/v1/projects/9/experiments/metric-ranges"
    )


def test_a_request_names_so_many_columns_and_conditions(three):
    many = [leaf("name", "=", "x")] * 201
    assert "200 conditions" in three.refused(
        400, "GET", FIND, params={"filter": json.dumps(group("or", *many))}
    )
    assert matching_ids(three, group("or", *many[:200])) == []
    sort = ",".join(["name=asc"] * 21)
    assert "20 columns" in three.refused(400, "GET", FIND, params={"sort": sort})
    assert len(matching_ids(three, sort=sort.partition(",")[2])) == 3
    names = [f"hp.a{n}" for n in range(101)]
    assert "100 at most" in three.refused(400, "GET", FIND, params={"columns": ",".join(names)})


def test_columns_of_any_name_are_not_kept_for_good(three):
    """Each column that anybody ever named was once kept for every experiment, and renewed at each change."""
    three.peers.values[queries.TrialStatistics] = []
    columns = three.catalogue.columns
    for start in range(0, 500, 50):
        three.get(FIND, columns=",".join(f"hp.a{n}" for n in range(start, start + 50)))
        three.get(FIND, columns=",".join(f"metric.a{n}" for n in range(start, start + 50)))
    assert len(columns._held.values) <= MAX_CACHED
    assert columns._held.unsettled.keys() <= columns._held.values.keys()
    assert matching_ids(three, group("and", leaf("hp.lr", "=", 0.1))) == [1]
    three.apply(story.created(4, hyperparameters={"lr": {"type": "const", "val": 0.1}}))
    assert matching_ids(three, group("and", leaf("hp.lr", "=", 0.1))) == [4, 1]


def test_who_names_metrics_without_end_makes_no_endless_list_of_columns(three):
    """The metric that a search goes by stays, whatever others are called."""
    many = [f"a{n}" for n in range(20_000)]
    metric = story.created(1).config["searcher"]["metric"]
    three.peers.values[queries.MetricNames] = {"mine": many, "training": many, "validation": [*many, metric]}
    columns = three.get("/api/v1/projects/1/columns")["columns"]
    metrics = [column["column"] for column in columns if column["type"] == "COLUMN_TYPE_NUMBER"]
    assert f"validation.{metric}.last" in metrics
    groups = ("mine.", "training.", "validation.")
    named = {column.rpartition(".")[0] for column in metrics if column.startswith(groups)}
    assert len(named) == MAX_METRICS
