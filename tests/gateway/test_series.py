"""Curves in buckets, and metrics to take away."""

from __future__ import annotations

import csv
import io

import pytest

from det_contracts import queries
from det_contracts.events import searcher
from det_contracts.problems import unavailable
from services.catalogue import report_export
from tests.gateway import stories as story

SERIES = "/api/v1/series"
EXPORT = "/api/v1/trials/1/metrics/export"
RAW = {"raw": True, "x": [1.0], "batches": [1], "last": [None]}
LONG = {
    "raw": False, "x": [5.0], "batches": [5], "last": [1.0], "min": [0.0], "max": [9.0], "mean": [2.0],
    "counts": [5], "gaps": [1],
}  # fmt: skip


@pytest.fixture
def trials(gateway):
    """Two trials, and a metrics service that remembers what it was asked."""
    gateway.apply(story.created(1), searcher.ExperimentActivated(1, "go"))
    gateway.apply(*(story.trial_created(id, lr=0.1) for id in (1, 2)))
    questions = gateway.peers.queries = []

    def answer(query):
        questions.append(query)
        same = {"group": "training", "name": "loss", "count": 5, "non_finite": 1, "monotone": True}
        return [{"trial_id": id, **same, **(LONG if id == 1 else RAW)} for id in query.trial_ids]

    gateway.peers.values[queries.Buckets] = answer
    return gateway


def test_curves_come_in_columns(trials):
    answer = trials.get(SERIES, trialIds=[1, 2], names="loss", x="epoch", to="7.5", width=300)
    common = {"group": "training", "name": "loss", "count": 5, "nonFinite": 1, "monotone": True}
    assert answer == {"series": [{"trialId": 1, **common, **LONG}, {"trialId": 2, **common, **RAW}]}
    (question,) = trials.peers.queries
    assert (question.x, question.first, question.last, question.width, question.group) == (
        "epoch",
        None,
        7.5,
        300,
        None,
    )


def test_many_curves_are_asked_for_in_parts(trials):
    trials.get(SERIES, trialIds=[1, 2], names=["a", "b", "c"], width=5000)
    assert [query.trial_ids for query in trials.peers.queries] == [[1], [2]]


@pytest.mark.parametrize(
    "params",
    [
        {"names": "loss"},
        {"trialIds": 1},
        {"trialIds": 1, "names": "loss", "width": 0},
        {"trialIds": 1, "names": "loss", "width": 10_001},
        {"trialIds": 1, "names": "loss", "from": "x"},
        {"trialIds": 1, "names": "loss", "from": "nan"},
        {"trialIds": 1, "names": "loss", "from": "2", "to": "1"},
    ],
)
def test_what_makes_no_sense_is_refused(trials, params):
    trials.refused(400, "GET", SERIES, params=params)
    assert trials.peers.queries == []


def test_trials_must_exist(trials):
    trials.refused(404, "GET", SERIES, params={"trialIds": [1, 9], "names": "loss"})


@pytest.fixture
def reported(trials):
    """What trial 1 reported, in two pages."""
    statistics = {"loss": {"type": "number"}, "note": {"type": "other"}, "only": {"type": "number"}}
    summary = {"training": statistics, "validation": {"acc": {"type": "number"}}}
    trials.peers.values[queries.TrialSummaries] = {"1": {"summary": summary}}
    row = {"trial_id": 1, "run": 1, "group": "training", "at": 7.5, "archived": False}
    rows = [
        {"id": 1, "steps_completed": 1, "metrics": {"loss": 0.5, "note": {"a": "ü"}}, **row},
        {"id": 2, "steps_completed": 2, "metrics": {"loss": "NaN", "only": 3}, **row},
        {"id": 3, "steps_completed": 2, "metrics": {"acc": 0.9}, **row, "group": "validation"},
    ]

    def answer(query):
        trials.peers.queries.append(query)
        mine = [report for report in rows if query.group in (None, report["group"])]
        left = [report for report in mine if query.after is None or report["id"] > query.after[3]]
        return {"rows": left[:2], "more": len(left) > 2}

    trials.peers.values[queries.Reports] = answer
    return trials


def test_an_export_of_all_has_no_columns_of_what_workers_sampled(reported):
    summary = reported.peers.values[queries.TrialSummaries]["1"]["summary"]
    summary["profile.process"] = {"cpu": {"type": "number"}}
    header = reported.send("GET", EXPORT).text.splitlines()[0]
    assert header == "trial_id,run,group,batches,time,acc,loss,note,only"
    assert not any(query.profiled for query in reported.peers.queries if isinstance(query, queries.Reports))
    header = reported.send("GET", EXPORT, params={"group": "profile.process"}).text.splitlines()[0]
    assert header == "trial_id,run,group,batches,time,cpu"


def test_export_as_csv(reported):
    answer = reported.send("GET", EXPORT)
    assert answer.headers["content-disposition"] == 'attachment; filename="trial-1-metrics.csv"'
    assert list(csv.reader(io.StringIO(answer.text))) == [
        ["trial_id", "run", "group", "batches", "time", "acc", "loss", "note", "only"],
        ["1", "1", "training", "1", "7.5", "", "0.5", '{"a":"ü"}', ""],
        ["1", "1", "training", "2", "7.5", "", "NaN", "", "3"],
        ["1", "1", "validation", "2", "7.5", "0.9", "", "", ""],
    ]
    assert not any(query.archived for query in reported.peers.queries)


def test_no_metric_is_a_formula_to_a_spreadsheet(trials):
    kinds = {"=cmd()": {"type": "string"}, "half\ud800": {"type": "string"}, "low": {"type": "number"}}
    trials.peers.values[queries.TrialSummaries] = {"1": {"summary": {"training": kinds}}}
    row = {"trial_id": 1, "run": 1, "group": "training", "at": 7.5, "archived": False, "steps_completed": 1}
    metrics = [{"=cmd()": "@now", "low": -0.5}, {"=cmd()": "\t=1", "low": "-Infinity"}]
    rows = [{"id": id, "metrics": values, **row} for id, values in enumerate(metrics)]
    trials.peers.values[queries.Reports] = {"rows": rows, "more": False}
    header, *lines = csv.reader(io.StringIO(trials.send("GET", EXPORT).text))
    assert header[5:] == ["'=cmd()", "half?", "low"]
    assert [row[5:] for row in lines] == [["'@now", "", "-0.5"], ["'\t=1", "", "-Infinity"]]


def test_export_of_one_group(reported):
    answer = reported.send("GET", EXPORT, params={"group": "validation"})
    assert answer.text == "trial_id,run,group,batches,time,acc\n1,1,validation,2,7.5,0.9\n"


def test_export_as_parquet(reported):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(reported.send("GET", EXPORT, params={"format": "parquet"}).content))
    columns = table.to_pydict()
    assert columns["batches"] == [1, 2, 2]
    assert columns["metrics.loss"][0] == 0.5
    assert columns["metrics.loss"][1] != columns["metrics.loss"][1]
    assert columns["metrics.note"] == ['{"a":"ü"}', None, None]
    assert columns["metrics.only"] == [None, 3.0, None]


def serve_pages(gateway, names, count, per_page):
    """Reports with one metric each, of a trial that has all these names."""
    statistics = {name: {"type": "number"} for name in names}
    gateway.peers.values[queries.TrialSummaries] = {"1": {"summary": {"training": statistics}}}
    row = {"trial_id": 1, "run": 1, "group": "training", "at": 7.5, "archived": False}
    rows = [{"id": n, "steps_completed": n, "metrics": {names[n % 7]: 0.5}, **row} for n in range(count)]

    def answer(query):
        start = 0 if query.after is None else query.after[3] + 1
        return {"rows": rows[start : start + per_page], "more": start + per_page < count}

    gateway.peers.values[queries.Reports] = answer


def test_very_many_columns_do_not_hold_up_the_loop(trials, longest_turn):
    serve_pages(trials, [f"name{number}" for number in range(3000)], 1500, 1500)
    content = trials.send("GET", EXPORT).content
    longest_turn.check()
    assert [line.count(b",") for line in content.splitlines()] == [3004] * 1501


def test_pages_are_gathered_to_row_groups(trials, monkeypatch):
    """Each group costs memory for every column, until the file is complete."""
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(report_export, "CELLS_AT_ONCE", 100)
    monkeypatch.setattr(report_export, "ROW_GROUP_CELLS", 3000)
    serve_pages(trials, [f"name{number}" for number in range(15)], 400, 10)
    content = trials.send("GET", EXPORT, params={"format": "parquet"}).content
    file = parquet.ParquetFile(io.BytesIO(content))
    assert (file.metadata.num_rows, file.metadata.num_row_groups) == (400, 3)
    table = file.read().to_pydict()
    assert table["batches"] == list(range(400))
    assert table["metrics.name3"] == [0.5 if n % 7 == 3 else None for n in range(400)]


def test_a_table_that_parquet_cannot_describe_is_refused(trials):
    statistics = {f"name{number}": {"type": "number"} for number in range(1000)}
    trials.peers.values[queries.TrialSummaries] = {"1": {"summary": {"training": statistics}}}
    trials.peers.values[queries.ReportWindow] = {"rows": [], "total": 1_000_000}
    message = trials.refused(400, "GET", EXPORT, params={"format": "parquet"})
    assert "1,000,000 reports of 1,000 metrics" in message
    assert trials.send("GET", EXPORT, params={"format": "csv"}).status_code == 200


def test_numbers_of_any_size_are_exported(trials):
    statistics = {"low": {"type": "number"}}
    trials.peers.values[queries.TrialSummaries] = {"1": {"summary": {"training": statistics}}}
    row = {"trial_id": 1, "run": 1, "group": "training", "at": 7.5, "archived": False, "steps_completed": 1}
    rows = [{"id": n, "metrics": {"low": value}, **row} for n, value in enumerate([10**400, 0.5])]
    trials.peers.values[queries.Reports] = {"rows": rows, "more": False}
    assert trials.send("GET", EXPORT).text.splitlines()[1].endswith(f",{10**400}")
    parquet = pytest.importorskip("pyarrow.parquet")
    content = trials.send("GET", EXPORT, params={"format": "parquet"}).content
    assert parquet.read_table(io.BytesIO(content)).to_pydict()["metrics.low"] == [None, 0.5]


def test_parquet_is_refused_where_it_cannot_be_written(reported, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    message = reported.refused(501, "GET", EXPORT, params={"format": "parquet"})
    assert "steadfast[parquet]" in message


def test_unknown_forms_and_trials_are_refused(reported):
    reported.refused(400, "GET", EXPORT, params={"format": "xls"})
    reported.refused(404, "GET", "/api/v1/trials/9/metrics/export")


def test_without_the_metrics_service_nothing_is_sent(reported):
    def away(query):
        raise unavailable("metrics is away")

    reported.peers.values[queries.TrialSummaries] = away
    reported.refused(503, "GET", EXPORT)
