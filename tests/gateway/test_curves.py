"""Metrics as curves, once and as they change (REST spec, sections 3 and 4)."""

from __future__ import annotations

import pytest

from det_contracts import queries
from det_contracts.events import searcher
from det_contracts.problems import unavailable
from services.rest_routes import change_stream
from tests.gateway import stories as story

STREAM = "/api/v1/experiments/1/metrics-stream"
THIRD = pytest.approx(0.3)
SERIES = "/api/v1/trials/time-series"


def point(steps, **values):
    return [steps, 1_700_000_000.0 + steps, None, values]


class Reported:
    """Curves as the metrics service would tell them; remembers what it was asked."""

    def __init__(self):
        self.rows = []
        self.queries = []

    def __call__(self, query):
        self.queries.append(query)
        return [
            row
            for row in self.rows
            if row["trial_id"] in query.trial_ids and query.group in (None, row["group"])
        ]


@pytest.fixture
def curves(gateway):
    """Experiment 1 with three trials, of which two have validated."""
    gateway.apply(story.created(1), searcher.ExperimentActivated(1, "go"))
    gateway.apply(*(story.trial_created(id, lr=0.1 * id) for id in (1, 2, 3)))
    gateway.apply(story.validated(1, 100, 0.5), story.validated(3, 100, 0.2))
    reported = Reported()
    reported.rows = [
        {"trial_id": id, "group": group, "points": [point(50, loss=0.9), point(100, loss=0.1 * id)]}
        for id in (1, 3)
        for group in ("training", "validation")
    ]
    gateway.peers.values[queries.Series] = reported
    gateway.curves = reported
    return gateway


def end(gateway, id=1):
    ended = searcher.ExperimentEnded(id, "COMPLETED", "done")
    gateway.apply(searcher.ExperimentStopping(id, "STOPPING_COMPLETED", "done"), ended)


def test_time_series_come_with_their_trials(curves):
    curves.curves.rows[0]["points"][1] = [100, 1_700_000_100.5, 2.0, {"loss": "NaN"}]
    series = curves.get(SERIES, trialIds=[1, 2], metricNames="loss", group="training", maxDatapoints=50)
    first, second = series["trials"]
    assert (first["trial"]["id"], first["trial"]["hparams"]) == (1, {"lr": 0.1})
    assert first["metrics"] == [
        {
            "group": "training",
            "type": "METRIC_TYPE_TRAINING",
            "data": [
                {
                    "batches": 50,
                    "values": {"loss": 0.9},
                    "time": "2023-11-14T22:14:10.000000Z",
                    "epoch": None,
                },
                {
                    "batches": 100,
                    "values": {"loss": "NaN"},
                    "time": "2023-11-14T22:15:00.500000Z",
                    "epoch": 2.0,
                },
            ],
        }
    ]
    assert (second["trial"]["id"], second["metrics"]) == (2, [])
    (query,) = curves.curves.queries
    assert (query.names, query.group, query.limit, query.last) == (["loss"], "training", 50, None)


def test_time_series_of_ids_and_of_all_groups(curves):
    series = curves.get(SERIES, trial_ids=3, metric_ids=["validation.loss", "mine.a.b"], startBatches=10)
    assert [metrics["group"] for metrics in series["trials"][0]["metrics"]] == ["validation"]
    reads = [(query.group, query.names, query.first) for query in curves.curves.queries]
    assert reads == [("validation", ["loss"], 10), ("mine", ["a.b"], 10)]
    series = curves.get(SERIES, trialIds=3, metricNames="loss")
    assert [metrics["group"] for metrics in series["trials"][0]["metrics"]] == ["training", "validation"]


def test_what_is_asked_in_the_older_spelling(curves):
    series = curves.get(SERIES, trialIds=3, metricNames="loss", metricType="METRIC_TYPE_VALIDATION")
    (metrics,) = series["trials"][0]["metrics"]
    assert (metrics["group"], metrics["type"]) == ("validation", "METRIC_TYPE_VALIDATION")
    window = {
        "timeSeriesFilter.name": "batches",
        "timeSeriesFilter.integerRange.gt": 9,
        "timeSeriesFilter.integerRange.gte": 5,
        "timeSeriesFilter.integerRange.lt": 50,
        "timeSeriesFilter.integerRange.lte": 70,
        "endBatches": 60,
    }
    curves.get(SERIES, trialIds=3, metricNames="loss", group="mine", **window)
    assert [(query.group, query.first, query.last) for query in curves.curves.queries[1:]] == [
        ("mine", 10, 49)
    ]
    end(curves)
    for path in ("trials-sample", "trials-snapshot"):
        curves.curves.queries.clear()
        curves.lines(f"{STREAM}/{path}", metricName="loss", metricType="METRIC_TYPE_TRAINING")
        assert {query.group for query in curves.curves.queries} == {"training"}, path


@pytest.mark.parametrize(
    ("params", "status", "reason"),
    [
        (
            {"trialIds": 1, "metricNames": "loss", "timeSeriesFilter.name": "epoch"},
            400,
            "timeSeriesFilter.name must be batches",
        ),
        ({"metricNames": "loss"}, 400, "trialIds must name"),
        ({"trialIds": 1}, 400, "metricNames or metricIds"),
        ({"trialIds": 1, "metricIds": "loss"}, 400, "group.name"),
        ({"trialIds": 1, "metricNames": "loss", "maxDatapoints": -1}, 400, "max_datapoints"),
        ({"trialIds": 1, "metricNames": "loss", "startBatches": 9, "endBatches": 3}, 400, "range"),
        ({"trialIds": 9, "metricNames": "loss"}, 404, "trial '9' not found"),
    ],
)
def test_questions_about_series_that_make_no_sense(curves, params, status, reason):
    assert reason in curves.refused(status, "GET", SERIES, params=params)


def test_the_history_is_what_metrics_tells(curves):
    curves.peers.values[queries.ValidationHistory] = lambda query: (
        [{"trial_id": 3, "at": 1_700_000_000.0, "metric": 0.2}]
        if query == queries.ValidationHistory(1, True)
        else []
    )
    path = "/api/v1/experiments/1/validation-history"
    assert curves.get(path) == {
        "validationHistory": [{"trialId": 3, "endTime": "2023-11-14T22:13:20.000000Z", "searcherMetric": 0.2}]
    }
    assert curves.refused(404, "GET", path.replace("/1/", "/9/")) == "experiment '9' not found"
    curves.peers.values[queries.ValidationHistory] = unavailable("the metrics service is not running")
    assert "metrics" in curves.refused(503, "GET", path)


def test_names_of_metrics_by_group(curves):
    end(curves)
    curves.peers.values[queries.MetricNames] = lambda query: (
        {"training": ["loss", "lr"], "validation": ["loss"]} if query.experiment_ids == [1] else {}
    )
    (line,) = curves.lines("/api/v1/experiments/metrics-stream/metric-names", ids=1)
    assert line["result"] == {
        "searcherMetrics": ["loss"],
        "metricNames": [
            {"group": "training", "name": "loss"},
            {"group": "training", "name": "lr"},
            {"group": "validation", "name": "loss"},
        ],
    }
    path = "/api/v1/experiments/metrics-stream/metric-names"
    assert "ids must name" in curves.refused(400, "GET", path)
    assert "'9' not found" in curves.refused(404, "GET", path, params={"ids": 9})


def test_batches_are_read_in_pages(curves):
    end(curves)
    pages = {-1: ([10, 20], True), 20: ([30], False)}
    reads = []

    def answer(query):
        reads.append((query.group, query.metric))
        steps, more = pages[query.after]
        return {"steps": steps, "more": more}

    curves.peers.values[queries.ReportedSteps] = answer
    lines = curves.lines(f"{STREAM}/batches", metricName="loss", group="training")
    assert [line["result"] for line in lines] == [{"batches": [10, 20]}, {"batches": [30]}]
    assert reads == [("training", "loss")] * 2
    assert "metricName" in curves.refused(400, "GET", f"{STREAM}/batches")
    assert "period" in curves.refused(
        400, "GET", f"{STREAM}/batches", params={"metricName": "loss", "periodSeconds": -1}
    )


def test_a_snapshot_shows_all_trials_at_about_one_batch(curves):
    end(curves)
    for row in curves.curves.rows:
        row["points"] = row["points"][1:]
    (line,) = curves.lines(
        f"{STREAM}/trials-snapshot", metricName="loss", batchesProcessed=90, batchesMargin=20
    )
    assert line["result"]["trials"] == [
        {"trialId": 1, "hparams": {"lr": 0.1}, "metric": 0.1, "batchesProcessed": 100},
        {"trialId": 3, "hparams": {"lr": THIRD}, "metric": THIRD, "batchesProcessed": 100},
    ]
    (query,) = curves.curves.queries
    assert (query.group, query.first, query.last, query.nearest) == ("validation", 70, 110, 90)


def test_a_sample_holds_the_best_trials_first(curves):
    end(curves)
    (line,) = curves.lines(f"{STREAM}/trials-sample", metricName="loss", maxTrials=2, maxDatapoints=7)
    sample = line["result"]
    assert [trial["trialId"] for trial in sample["trials"]] == [3, 1]
    assert [entry["batches"] for entry in sample["trials"][0]["data"]] == [50, 100]
    assert (sample["promotedTrials"], sample["demotedTrials"]) == ([3, 1], [])
    assert curves.curves.queries[0].limit == 7


def test_a_stream_tells_what_changed_until_the_experiment_ends(curves, monkeypatch):
    monkeypatch.setattr(change_stream, "PERIOD_S", 0.01)
    received = []

    async def answer(query):
        received.append(query)
        if len(received) == 2:
            ended = searcher.ExperimentEnded(1, "COMPLETED", "done")
            await curves.append(searcher.ExperimentStopping(1, "STOPPING_COMPLETED", "done"), ended)
        return {"training": ["a"] if len(received) == 1 else ["a", "b"]}

    query = curves.peers.query

    async def answering(question, **options):
        if isinstance(question, queries.MetricNames):
            curves.peers.values[queries.MetricNames] = await answer(question)
        return await query(question, **options)

    curves.peers.query = answering
    path = "/api/v1/experiments/metrics-stream/metric-names"
    lines = curves.lines(path, ids=1)
    names = [[metric["name"] for metric in line["result"]["metricNames"]] for line in lines]
    assert names == [["a"], ["a", "b"]]
    assert len(received) >= 3
