"""Profiler series over REST: kept as metrics, listed and told again (REST spec, section 4)."""

from __future__ import annotations

import time

import msgspec
import pytest

from det_contracts import queries, subjects
from det_contracts.reports import ReportBatch
from tests.gateway import stories as story


@pytest.fixture
def running(gateway):
    gateway.apply(story.worker_here(), story.created(1), story.trial_created(1), *story.running(1))
    return gateway


def batch(**changes):
    labels = {
        "trialId": 1,
        "name": "gpu_util",
        "gpuUuid": "GPU-1",
        "metricType": "PROFILER_METRIC_TYPE_SYSTEM",
    }
    points = {
        "values": [1.5, 2.5],
        "batches": [10, 20],
        "timestamps": ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"],
    }
    labels |= {name: changes.pop(name) for name in list(changes) if name in labels}
    return points | changes | {"labels": labels}


def reported(gateway):
    stream = gateway.journal.streams[subjects.REPORTS]
    return [msgspec.json.decode(message.body, type=ReportBatch) for message in stream]


def test_series_become_metrics_of_their_group(running):
    other = batch(name="dataloader", gpuUuid="", metricType="PROFILER_METRIC_TYPE_TIMING", timestamps=[])
    assert running.post("/api/v1/trials/profiler/metrics", {"batches": [batch(), other]}) == {}
    (report_batch,) = reported(running)
    system, timing = report_batch.series
    assert (system.group, system.steps, system.columns) == (
        "profile.system",
        [10, 20],
        {"gpu_util.GPU-1": [1.5, 2.5]},
    )
    assert system.at == [1767225600.0, 1767225601.0]
    assert (timing.group, timing.columns) == ("profile.timing", {"dataloader": [1.5, 2.5]})


def test_a_time_without_a_zone_is_in_utc_wherever_the_gateway_runs(running, monkeypatch):
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "America/New_York")
        time.tzset()
        body = {"batches": [batch(timestamps=["2026-01-01T00:00:00", "2025-12-31T19:00:01-05:00"])]}
        running.post("/api/v1/trials/profiler/metrics", body)
    time.tzset()
    (report,) = reported(running)
    assert report.series[0].at == [1767225600.0, 1767225601.0]


def test_what_workers_see_of_processes_has_a_group_of_its_own(running):
    measured = batch(name="cpu_cores.rank0", gpuUuid="", metricType="PROFILER_METRIC_TYPE_PROCESS")
    running.post("/api/v1/trials/profiler/metrics", {"batches": [measured]})
    (report_batch,) = reported(running)
    assert [(series.group, list(series.columns)) for series in report_batch.series] == [
        ("profile.process", ["cpu_cores.rank0"])
    ]


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"batches": [1]}, 400, "differ in length"),
        ({"timestamps": ["2026-01-01T00:00:00Z"]}, 400, "differ in length"),
        ({"batches": [1, 2**53 + 1]}, 400, "must be from 0 to 9007199254740992"),
        ({"batches": [-1, 2]}, 400, "must be from 0 to 9007199254740992"),
        ({"name": ""}, 400, "labels.name"),
        ({"metricType": "X"}, 400, "labels.metricType"),
        ({"trialId": 9}, 404, "trial '9' not found"),
    ],
)
def test_what_is_refused(running, changes, status, message):
    body = {"batches": [batch(**changes)]}
    assert message in running.refused(status, "POST", "/api/v1/trials/profiler/metrics", body)
    assert reported(running) == []


def test_series_are_listed(running):
    summary = {
        "profile.system": {"cpu_util": {}},
        "profile.timing": {"backward": {}},
        "training": {"loss": {}},
    }
    running.peers.values[queries.TrialSummaries] = {"1": {"total_batches": 1, "summary": summary}}
    (row,) = running.lines("/api/v1/trials/1/profiler/available_series")
    names = [(series["name"], series["metricType"]) for series in row["result"]["labels"]]
    assert names == [
        ("cpu_util", "PROFILER_METRIC_TYPE_SYSTEM"),
        ("backward", "PROFILER_METRIC_TYPE_TIMING"),
    ]


def test_points_of_a_series(running):
    row = {"id": 1, "trial_id": 1, "run": 1, "steps_completed": 10, "at": 0.0}
    rows = [
        {**row, "group": "profile.system", "metrics": {"cpu_util": 3.0}},
        {**row, "group": "profile.system", "metrics": {"other": 1.0}},
    ]
    running.peers.values[queries.Reports] = lambda query: {
        "rows": rows if query.group == "profile.system" else [],
        "more": False,
    }
    (line,) = running.lines("/api/v1/trials/1/profiler/metrics", **{"labels.name": "cpu_util"})
    batch = line["result"]["batch"]
    assert (batch["values"], batch["batches"]) == ([3.0], [10])
    assert batch["labels"]["metricType"] == "PROFILER_METRIC_TYPE_SYSTEM"
    assert "labels.name" in running.refused(400, "GET", "/api/v1/trials/1/profiler/metrics")
