from __future__ import annotations

import csv
import io
import json
import tarfile
from pathlib import Path

import pytest

from tests.sdk.fake_gateway import Lines, Raw

TRIAL = {
    "id": 2,
    "experimentId": 7,
    "state": "STATE_ERROR",
    "stateReason": "exited with 1",
    "hparams": {},
    "summaryMetrics": {"validation_metrics": {"loss": {"count": 2, "min": 0.1, "max": 0.3, "last": 0.1}}},
}
WORKLOADS = [
    {"training": {"totalBatches": 8, "metrics": {"avgMetrics": {"loss": 1}, "batchMetrics": [{"loss": 1}]}}},
    {"validation": {"totalBatches": 8, "metrics": {"avgMetrics": {"loss": 2}}}},
    {"checkpoint": {"totalBatches": 8, "uuid": "u-1", "state": "STATE_COMPLETED", "metadata": {"a": 1}}},
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
    assert "u-1" in workloads
    assert reason == "Trial 2 is ERROR: exited with 1\n"
    (call,) = [call for call in described.calls if call.path.endswith("/workloads")]
    assert call.query == {"limit": ["1000"], "offset": ["0"]}


CAUSE = {
    "rankId": 1,
    "said": {"log": "torch.OutOfMemoryError: CUDA out of memory.\x1b[0m"},
    "place": {"file": "/code/model/train.py", "line": 12, "function": "main"},
}


def test_describe_names_the_error_in_the_log(described, det):
    described.answer("GET", "/api/v1/trials/2/logs/cause", {"cause": CAUSE})
    output = det("t", "describe", "2").out
    assert "(rank 1, train.py:12): torch.OutOfMemoryError: CUDA out of memory." in output
    assert "\x1b" not in output
    assert "OutOfMemoryError" not in det("t", "describe", "2", "--csv").out


def test_describe_of_a_log_without_an_error_names_none(described, det):
    described.answer("GET", "/api/v1/trials/2/logs/cause", {"cause": None})
    assert det("t", "describe", "2").out.endswith("Trial 2 is ERROR: exited with 1\n")


def test_describe_has_the_columns_of_the_published_command(described, det):
    trial, titled = det("t", "describe", "2", "--metrics", "--csv").out.split("\n\n")
    title, _, workloads = titled.partition("\n")
    assert title == "Workloads:"
    assert trial.startswith("Experiment ID,State,H-Params,Started,Ended,")
    training, validation, checkpoint = csv.DictReader(io.StringIO(workloads))
    assert list(training) == [
        *("# of Batches", "Report Time", "Checkpoint", "Checkpoint UUID", "Checkpoint Metadata"),
        *("Validation Metrics", "Workload Metrics"),
    ]
    assert json.loads(training["Workload Metrics"])["avgMetrics"] == {"loss": 1}
    assert json.loads(validation["Validation Metrics"]) == {"avgMetrics": {"loss": 2}}
    assert (checkpoint["Checkpoint"], checkpoint["Checkpoint UUID"]) == ("COMPLETED", "u-1")
    assert (checkpoint["Checkpoint Metadata"], checkpoint["Validation Metrics"]) == ('{"a": 1}', "")
    assert "Workload Metrics" not in det("t", "describe", "2", "--csv").out


def test_describe_summarises_metrics(described, det):
    out = det("t", "describe", "2", "--metrics-summary", "--csv").out
    assert (
        out.split("\n\n")[1]
        == "Metrics:\nGroup,Metric,Count,Min,Max,Mean,Last,Type\nvalidation,loss,2,0.1,0.3,,0.1,"
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


EXPORT = "/api/v1/trials/2/metrics/export"


@pytest.fixture
def exported(master):
    master.answer("GET", EXPORT, Raw(b"trial_id,loss\n2,0.5\n"))
    return master


def test_a_support_bundle_holds_all_that_is_known(described, det, tmp_path):
    described.answer("GET", "/api/v1/experiments/7", {"experiment": {"id": 7, "state": "STATE_ERROR"}})
    described.answer("GET", "/api/v1/why/trial/2", {"steps": [{"what": "trial 2 ended in error"}]})
    record = {"id": "1", "timestamp": "2026-01-01T00:00:00Z", "message": "no such file"}
    described.answer("GET", "/api/v1/trials/2/logs", Lines([{"result": record}]))
    entry = {"timestamp": "2026-01-01T00:00:00Z", "level": "LOG_LEVEL_INFO", "message": "agent vm offered"}
    described.answer("GET", "/api/v1/master/logs", Lines([{"result": {"logEntry": entry}}]))
    output = det("t", "support-bundle", "2", "-o", tmp_path / "out").out
    (path,) = (tmp_path / "out").glob("det-bundle-trial-2-*.tar.gz")
    assert output == f"bundle path: {path}\n"
    with tarfile.open(path) as archive:
        held = {Path(m.name).name: archive.extractfile(m).read().decode() for m in archive}
        assert {Path(m.name).parent.name for m in archive} == {path.name.removesuffix(".tar.gz")}
    assert held["trial_logs.txt"] == "no such file\n"
    assert held["master_logs.txt"] == "2026-01-01T00:00:00Z [INFO]: agent vm offered\n"
    assert json.loads(held["api_trial_call.json"]) == TRIAL
    assert json.loads(held["api_experiment_call.json"])["experiment"]["id"] == 7
    assert "ended in error" in held["why.json"]
    assert described.calls_to("GET", "/api/v1/why/trial/2")[0].query == {"verbose": ["true"]}


def test_metrics_are_written_to_standard_output(exported, start_det):
    done = start_det("trial", "metrics", "2", "--group", "training")
    assert done.communicate()[0] == "trial_id,loss\n2,0.5\n"
    assert exported.calls[-1].query == {"format": ["csv"], "group": ["training"]}


def test_metrics_go_into_a_file_whose_name_says_the_format(exported, det, tmp_path):
    assert det("t", "metrics", "2", "-o", tmp_path / "m.parquet") == (0, "", "")
    assert (tmp_path / "m.parquet").read_bytes() == b"trial_id,loss\n2,0.5\n"
    assert exported.calls[-1].query == {"format": ["parquet"]}
    assert [path.name for path in tmp_path.iterdir() if "m." in path.name] == ["m.parquet"]


def test_a_file_that_cannot_be_written_is_said_in_a_line(exported, det, tmp_path):
    status, _, error = det("t", "metrics", "2", "-o", tmp_path / "none" / "m.csv")
    assert status == 1
    assert "cannot write" in error
    assert "Traceback" not in error


def test_a_table_that_breaks_off_leaves_no_file(exported, det, tmp_path):
    exported.answer("GET", EXPORT, Raw(b"trial_id,loss\n2,0.5\n", cut=True))
    assert det("t", "metrics", "2", "-o", tmp_path / "m.csv").status == 1
    assert not [path for path in tmp_path.iterdir() if "m.csv" in path.name]
