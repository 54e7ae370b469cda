from __future__ import annotations

import json

import pytest

BASE = "/api/v1/experiments"
EXPERIMENT = {
    "id": 7,
    "name": "mnist",
    "description": "",
    "state": "STATE_ERROR",
    "stateReason": "",
    "startTime": "2023-08-01T12:00:00Z",
    "endTime": "2023-08-01T12:10:00Z",
    "archived": False,
    "resourcePool": "default",
    "labels": ["a", "b"],
}
TRIAL = {
    "id": 2,
    "experimentId": 7,
    "state": "STATE_ERROR",
    "stateReason": "python3: can't open file 'missing.py'",
    "hparams": {"lr": 0.1},
    "restarts": 5,
    "totalBatchesProcessed": 64,
}
WORKLOADS = [
    {
        "training": {
            "totalBatches": 64,
            "endTime": "2023-08-01T12:05:00Z",
            "metrics": {"avgMetrics": {"loss": 0.5}},
        }
    },
    {"validation": {"totalBatches": 64, "metrics": {"avgMetrics": {"accuracy": 0.9}}}},
    {"checkpoint": {"totalBatches": 64, "uuid": "u-1", "state": "STATE_DELETED"}},
    {"training": {"totalBatches": 128, "metrics": {"avgMetrics": {"loss": 0.25}}}},
]


@pytest.fixture
def described(master):
    master.answer("GET", f"{BASE}/7", {"experiment": EXPERIMENT, "jobSummary": None})
    master.answer("GET", f"{BASE}/7/trials", {"trials": [TRIAL]})
    master.answer("GET", "/api/v1/trials/2/workloads", {"workloads": WORKLOADS})
    return master


def test_three_tables_and_the_reason(described, det):
    result = det("e", "describe", "7")
    assert result.status == 0
    experiment, trials, workloads, reason = result.out.split("\n\n")
    assert experiment.startswith("Experiment:\n")
    assert "| ERROR |          | 2023-08-01 12:00:00+0000 | 2023-08-01 12:10:00+0000 | mnist" in experiment
    assert "a, b" in experiment
    assert trials.startswith("Trials:\n")
    assert '{"lr": 0.1}' in trials
    assert workloads.startswith("Workloads:\n")
    assert "u-1" in workloads
    assert "accuracy" not in workloads
    assert reason == "Trial 2 is ERROR: python3: can't open file 'missing.py'\n"


def test_the_error_in_the_log_comes_last(described, det):
    cause = {"rankId": None, "said": {"log": "KeyError: 'lr'"}, "place": {"file": "/a/train.py", "line": 4}}
    described.answer("GET", "/api/v1/trials/2/logs/cause", {"cause": cause})
    sentence = "The log of trial 2 says (train.py:4): KeyError: 'lr'"
    assert det("e", "describe", "7").out.splitlines()[-1] == sentence
    assert sentence not in det("e", "describe", "7", "--csv").out


def test_workloads_are_read_in_pages(described, det):
    """A master refuses an answer that would be too large for it."""
    path, pagination = "/api/v1/trials/2/workloads", {"total": len(WORKLOADS)}
    pages = [{"workloads": part, "pagination": pagination} for part in (WORKLOADS[:1], WORKLOADS[1:])]
    described.answer("GET", path, *pages)
    assert "u-1" in det("e", "describe", "7").out
    assert [call.query.get("offset") for call in described.calls_to("GET", path)] == [["0"], ["1"]]


def test_metrics_have_a_column_each(described, det):
    out = det("e", "describe", "7", "--metrics", "--csv").out
    parts = out.split("\n\n")
    assert [part.partition("\n")[0] for part in parts] == ["Experiment:", "Trials:", "Workloads:"]
    assert parts[2].splitlines()[1:] == [
        "Trial ID,# of Batches,State,Report Time,Training Metric: loss,Checkpoint State"
        ",Checkpoint Report Time,Validation State,Validation Report Time,Validation Metric: accuracy"
        ",Checkpoint UUID",
        "2,64,COMPLETED,2023-08-01 12:05:00+0000,0.5,DELETED,,COMPLETED,,0.9,u-1",
        "2,128,COMPLETED,,0.25,,,,,,",
    ]
    assert "can't open" not in out


def test_json_is_what_the_master_said(described, det):
    described.answer("GET", f"{BASE}/8", {"experiment": {"id": 8}, "jobSummary": {"jobsAhead": 1}})
    assert json.loads(det("e", "describe", "7,8", "--json").out) == [
        {"experiment": EXPERIMENT, "jobSummary": None},
        {"experiment": {"id": 8}, "jobSummary": {"jobsAhead": 1}},
    ]
    described.answer("GET", f"{BASE}/8", {"experiment": {"id": 8}})
    assert json.loads(det("e", "describe", "8", "--json").out)[0]["jobSummary"] is None


def test_files_instead(described, det, tmp_path):
    result = det("e", "describe", "7", "--outdir", tmp_path / "out")
    assert result.out == ""
    heads = {path.name: path.read_text().split(",")[0] for path in (tmp_path / "out").iterdir()}
    assert heads == {
        "experiments.csv": "Experiment ID",
        "trials.csv": "Trial ID",
        "workloads.csv": "Trial ID",
    }


def test_ids_that_are_none(described, det):
    result = det("e", "describe", "7,x")
    assert result.status == 2
    assert "'7,x' is not a list of ids" in result.err
