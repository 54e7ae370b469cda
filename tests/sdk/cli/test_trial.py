from __future__ import annotations

import json

import pytest

TRIAL = {
    "id": 2,
    "experimentId": 7,
    "state": "STATE_ERROR",
    "stateReason": "exited with 1",
    "hparams": {},
    "summaryMetrics": {"validation_metrics": {"loss": {"count": 2, "min": 0.1, "max": 0.3, "last": 0.1}}},
}
WORKLOADS = [
    {"training": {"totalBatches": 8, "metrics": {"avgMetrics": {"loss": 1}, "batchMetrics": [{"loss": 1}]}}}
]


@pytest.fixture
def described(master):
    master.answer("GET", "/api/v1/trials/2", {"trial": TRIAL})
    master.answer("GET", "/api/v1/trials/2/workloads", {"workloads": WORKLOADS, "pagination": {"total": 1}})
    return master


def test_describe_shows_tables_and_the_reason(described, det):
    result = det("t", "describe", "2")
    trial, workloads, reason = result.out.split("\n\n")
    assert trial.startswith("Trial:\n")
    assert "training" in workloads
    assert reason == "Trial 2 is ERROR: exited with 1\n"
    assert described.calls[-1].query == {"limit": ["1000"], "offset": ["0"]}


def test_describe_summarises_metrics(described, det):
    out = det("t", "describe", "2", "--metrics-summary", "--csv").out
    assert (
        out.split("\n\n")[1] == "Group,Metric,Count,Min,Max,Mean,Last,Type\nvalidation,loss,2,0.1,0.3,,0.1,"
    )


def test_describe_as_json_carries_batch_metrics(described, det):
    assert json.loads(det("trial", "describe", "2", "--json", "--metrics").out) == {
        "trial": TRIAL,
        "workloads": WORKLOADS,
    }
    assert described.calls[-1].query["includeBatchMetrics"] == ["true"]


def test_kill(master, det):
    master.answer("POST", "/api/v1/trials/2/kill", {})
    assert det("t", "kill", "2") == (0, "Killed trial 2\n", "")
