from __future__ import annotations

import base64
import csv
import io
import json

import pytest

from determined import yamlfile
from tests.sdk.fake_gateway import Lines, Status

BASE = "/api/v1/experiments"
EXPERIMENT = {
    "id": 7,
    "username": "determined",
    "name": "mnist",
    "state": "STATE_RUNNING",
    "progress": 0.4321,
    "startTime": "2023-08-01T12:00:00.123456Z",
    "endTime": None,
    "resourcePool": "default",
    "forkedFrom": 3,
    "archived": False,
    "workspaceName": "Uncategorized",
    "projectName": "Default",
}


def paged(key, items):
    """A list endpoint that honours offset and limit."""

    def answer(call):
        offset, limit = int(call.query.get("offset", ["0"])[0]), int(call.query.get("limit", ["0"])[0])
        page = items[offset:][: limit or None]
        return {key: page, "pagination": {"total": len(items)}}

    return answer


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_list_shows_ones_own(master, det):
    master.answer("GET", BASE, paged("experiments", [EXPERIMENT]))
    header, rule, row = det("e", "list").out.splitlines()
    assert header == (
        " ID | Owner      | Name  | Parent ID | State   | Progress"
        " | Started                  | Ended | Resource Pool"
    )
    assert rule.startswith("----+------------+-------+-----------+---------+----------+-")
    assert row == (
        "  7 | determined | mnist |         3 | RUNNING | 43.2%   "
        " | 2023-08-01 12:00:00+0000 |       | default"
    )
    assert master.calls_to("GET", BASE)[0].query == {
        "archived": ["false"],
        "users": ["determined"],
        "lean": ["true"],
        "limit": ["200"],
        "offset": ["0"],
    }


def test_a_list_of_what_takes_the_disk_is_sorted_by_it(master, det):
    """Whoever has to make room looks for the experiments with the largest checkpoints."""
    large = EXPERIMENT | {"checkpointCount": 3, "checkpointSize": str(3 << 30)}
    master.answer("GET", BASE, paged("experiments", [large]))
    (row,) = rows(det("e", "list", "-a", "--disk", "--csv").out)
    assert (row["Archived"], row["Checkpoints"], row["Checkpoint Size"]) == ("False", "3", "3.0GB")
    query = master.calls[-1].query
    assert (query["sortBy"], query["orderBy"]) == (["SORT_BY_CHECKPOINT_SIZE"], ["ORDER_BY_DESC"])


def test_list_all_adds_columns_and_drops_filters(master, det):
    master.answer("GET", BASE, paged("experiments", [EXPERIMENT]))
    result = det("e", "list", "-a", "--show_project", "--csv")
    (row,) = rows(result.out)
    assert list(row)[:3] == ["Workspace", "Project", "ID"]
    assert (row["Archived"], row["Workspace"], row["Project"]) == ("False", "Uncategorized", "Default")
    assert set(master.calls[-1].query) == {"lean", "limit", "offset"}


@pytest.mark.parametrize(
    ("options", "ids", "requests"),
    [
        (["--limit", "2"], [0, 1, 2, 3, 4], 3),
        (["--limit", "2", "--pages", "1"], [0, 1], 1),
        (["--limit", "2", "--offset", "3"], [3, 4], 1),
        (["--offset", "9"], [], 1),
    ],
)
def test_list_pages(master, det, options, ids, requests):
    master.answer("GET", BASE, paged("experiments", [{**EXPERIMENT, "id": n} for n in range(5)]))
    assert [int(row["ID"]) for row in rows(det("e", "list", "--csv", *options).out)] == ids
    assert len(master.calls_to("GET", BASE)) == requests


@pytest.mark.parametrize(
    ("verb", "done"),
    [("pause", "Paused"), ("activate", "Activated"), ("cancel", "Canceled"), ("kill", "Killed")],
)
def test_acts_say_what_was_done(master, det, verb, done):
    master.answer("POST", f"{BASE}/7/{verb}", {})
    assert det("e", verb, "7") == (0, f"{done} experiment 7\n", "")


@pytest.mark.parametrize(
    ("states", "status"),
    [
        (["RUNNING", "STOPPING_COMPLETED", "COMPLETED"], 0),
        (["CANCELED"], 1),
        (["ERROR"], 1),
        (["DELETED"], 1),
    ],
)
def test_wait_ends_with_the_experiment(master, det, states, status):
    answers = [{"experiment": {**EXPERIMENT, "state": f"STATE_{state}"}} for state in states]
    master.answer("GET", f"{BASE}/7", *answers)
    result = det("e", "wait", "7", "--polling-interval", "0")
    assert result.status == status
    assert f"Experiment 7 is {states[-1]}" in result.out + result.err


def test_wait_says_why_it_failed(master, det):
    failed = {**EXPERIMENT, "state": "STATE_ERROR", "stateReason": "trial 1 exited with 127"}
    master.answer("GET", f"{BASE}/7", {"experiment": failed})
    master.answer("GET", f"{BASE}/7/trials", {"trials": [{"id": 1, "state": "STATE_ERROR"}]})
    cause = {"rankId": None, "said": {"log": "sh: nope: not found"}, "place": None}
    master.answer("GET", "/api/v1/trials/1/logs/cause", {"cause": cause})
    message = det("e", "wait", "7").err
    assert "Experiment 7 is ERROR: trial 1 exited with 127" in message
    assert "The log of trial 1 says: sh: nope: not found" in message
    (call,) = [call for call in master.calls if call.path.endswith("/trials")]
    assert call.query == {"states": ["STATE_ERROR"], "sortBy": ["SORT_BY_ID"], "limit": ["1"]}


def test_wait_does_not_wait_for_a_paused_one(master, det):
    master.answer("GET", f"{BASE}/7", {"experiment": {**EXPERIMENT, "state": "STATE_PAUSED"}})
    result = det("e", "wait", "7")
    assert result.status == 1
    assert result.err.startswith("Failed to wait for an experiment: experiment 7 is paused; ")
    assert "det experiment activate 7" in result.err


def test_wait_survives_a_busy_gateway(master, det):
    busy = [Status(504, "busy")] * 20
    master.answer("GET", f"{BASE}/7", *busy, {"experiment": {**EXPERIMENT, "state": "STATE_COMPLETED"}})
    assert det("e", "wait", "7", "--polling-interval", "0").status == 0


def test_wait_gives_up_on_an_unknown_experiment_at_once(master, det):
    assert det("e", "wait", "9").status == 1
    assert len(master.calls_to("GET", f"{BASE}/9")) == 1


def test_list_trials(master, det):
    trial = {"id": 2, "state": "STATE_COMPLETED", "hparams": {"lr": 0.1}, "startTime": "2023-08-01T12:00:00Z"}
    master.answer("GET", f"{BASE}/7/trials", paged("trials", [{**trial, "totalBatchesProcessed": 64}]))
    (row,) = rows(det("e", "lt", "7", "--csv").out)
    assert row == {
        "Trial ID": "2",
        "State": "COMPLETED",
        "H-Params": '{"lr": 0.1}',
        "Started": "2023-08-01 12:00:00+0000",
        "Ended": "",
        "# of Batches": "64",
    }


def checkpoint(uuid, metric, state="COMPLETED"):
    return {
        "uuid": uuid,
        "state": f"STATE_{state}",
        "metadata": {"steps_completed": 10},
        "resources": {"state.pt": "2048", "code/": "0"},
        "training": {"trialId": 2, "searcherMetric": metric},
    }


def test_list_checkpoints(master, det):
    master.answer("GET", f"{BASE}/7/checkpoints", {"checkpoints": [checkpoint("u-1", 0.5)]})
    (row,) = rows(det("e", "list-checkpoints", "7", "--csv").out)
    assert row == {
        "Trial ID": "2",
        "# of Batches": "10",
        "State": "COMPLETED",
        "Validation Metric": "0.5",
        "UUID": "u-1",
        "Resources": "code/\nstate.pt",
        "Size": "2.0KB",
    }
    assert "code/, state.pt" in det("e", "list-checkpoints", "7").out
    assert master.calls[-1].query["sortBy"] == ["SORT_BY_END_TIME"]


@pytest.mark.parametrize(("smaller", "best"), [(True, ["c", "a"]), (False, ["b", "a"])])
def test_the_best_checkpoints_follow_the_searchers_direction(master, det, smaller, best):
    checkpoints = [
        checkpoint("none", None),
        checkpoint("nan", "NaN"),
        checkpoint("a", 2),
        checkpoint("b", 3),
        checkpoint("c", 1),
        checkpoint("gone", 0, "DELETED"),
    ]
    master.answer("GET", f"{BASE}/7/checkpoints", {"checkpoints": checkpoints})
    config = {"searcher": {"metric": "loss", "smaller_is_better": smaller}}
    master.answer("GET", f"{BASE}/7", {"experiment": {**EXPERIMENT, "config": config}})
    assert [row["UUID"] for row in rows(det("e", "lc", "7", "--best", "2", "--csv").out)] == best


def test_config_is_yaml(master, det):
    config = {"searcher": {"name": "single"}, "hyperparameters": {"lr": 1e-5, "odd": "1e-3"}}
    master.answer("GET", f"{BASE}/7", {"experiment": {**EXPERIMENT, "config": config}})
    assert yamlfile.parse(det("e", "config", "7").out) == config


def test_download_model_def(master, det, tmp_path):
    master.answer("GET", f"{BASE}/7/model_def", {"b64Tgz": base64.b64encode(b"archive").decode()})
    result = det("e", "download-model-def", "7", "--output-dir", tmp_path / "new")
    path = tmp_path / "new" / "experiment_7_model_def.tgz"
    assert result.out == f"{path}\n"
    assert path.read_bytes() == b"archive"


def test_logs_are_those_of_the_lowest_trial(master, det):
    master.answer("GET", f"{BASE}/7/trials", {"trials": [{"id": 12}, {"id": 9}]})
    master.answer("GET", "/api/v1/trials/9/logs", Lines([{"result": {"message": "hello\n"}}]))
    result = det("e", "logs", "7")
    assert result.out.splitlines()[0] == "hello"
    assert result.out.splitlines()[1].endswith("det trial logs -f 9")


def test_logs_without_a_trial(master, det):
    master.answer("GET", f"{BASE}/7/trials", {"trials": []})
    assert (
        det("e", "logs", "7").err
        == "Failed to show the log of the first trial: experiment 7 has no trial yet\n"
    )


def test_a_terminal_gets_a_drawn_table(master, det_on_terminal):
    master.answer("GET", BASE, paged("experiments", [{**EXPERIMENT, "name": "[bold]x"}]))
    status, shown = det_on_terminal("e", "list")
    assert status == 0
    assert "[bold]x" in shown
    assert "─" in shown
    assert "+--" not in shown


def test_list_as_json_is_whole(master, det):
    whole = {"id": 7, "name": "x", "config": {"searcher": {"name": "single"}}}
    master.answer("GET", "/api/v1/experiments", {"experiments": [whole], "pagination": {"total": 1}})
    done = det("e", "list", "--all", "--json")
    assert (done.status, json.loads(done.out)) == (0, [whole])
    assert "lean" not in master.calls_to("GET", "/api/v1/experiments")[0].query
    assert det("e", "list", "--csv", "--json").status == 2
