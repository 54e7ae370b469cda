from __future__ import annotations

import base64
import os
import re
import shutil
import signal
import subprocess
import threading
import uuid

import pytest

from determined import yamlfile
from determined.cli.experiment_create import merged
from determined.cli.failure import Failure
from tests.sdk.fake_gateway import Lines, Status

BASE = "/api/v1/experiments"
CONFIG = """\
# what this is for
name: x
hyperparameters:
  lr: 1e-3
searcher: {name: single, max_length: {epochs: 1}}
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "c.yaml").write_text(CONFIG)
    model = tmp_path / "model"
    model.mkdir()
    (model / "train.py").write_text("print()\n" * 300)
    (model / "data.py").write_text("#")
    return tmp_path / "c.yaml", model


@pytest.fixture
def accepting(master):
    master.answer("POST", BASE, {"experiment": {"id": 1}, "warnings": []})
    return master


def created(master):
    return master.calls_to("POST", BASE)[-1]


def test_what_a_script_sees(accepting, det, files):
    result = det("e", "create", *files)
    assert result == (
        0,
        f"Preparing files (.../{files[1].name}) to send to master... 2.3KB and 2 files\n"
        "Created experiment 1\n",
        "",
    )
    assert re.search(r"Created experiment (\d+)\n", result.out)[1] == "1"


def test_what_the_master_is_sent(accepting, det, files):
    det("e", "create", *files, "--template", "t", "--project_id", "3")
    call = created(accepting)
    assert call.json["config"] == CONFIG
    assert call.json["activate"] is True
    assert (call.json["template"], call.json["projectId"]) == ("t", 3)
    assert [item["path"] for item in call.json["modelDefinition"]] == ["data.py", "train.py"]
    assert base64.b64decode(call.json["modelDefinition"][0]["content"]) == b"#"
    assert uuid.UUID(call.headers["Idempotency-Key"])


def test_each_create_has_a_key_of_its_own(accepting, det, files):
    keys = set()
    for _ in range(2):
        det("e", "create", *files)
        keys.add(created(accepting).headers["Idempotency-Key"])
    assert len(keys) == 2


def test_paused_and_includes(accepting, det, files, tmp_path):
    (tmp_path / "extra.txt").write_text("more")
    det("e", "create", *files, "--paused", "-i", tmp_path / "extra.txt")
    assert created(accepting).json["activate"] is False
    assert created(accepting).json["modelDefinition"][-1]["path"] == "extra.txt"


def git(folder, *words):
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(files, tmp_path):
    """A model in a checkout, whose branch follows one of another repository."""
    model = files[1]
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    git(model, "init", "-q", "-b", "work")
    git(model, "add", "-A")
    git(model, "commit", "-qm", "first")
    git(model, "remote", "add", "far", "../remote.git")
    git(model, "push", "-qu", "far", "work")
    return model


def test_the_commit_of_a_checkout_is_sent(accepting, det, files, checkout):
    (checkout / "not-followed").touch()
    done = det("e", "create", *files, "--git", "--paused")
    assert done.out.splitlines()[0] == "Using remote URL '../remote.git' from upstream branch 'far/work'"
    body = created(accepting).json
    assert body["gitCommit"] == git(checkout, "rev-parse", "HEAD")
    assert (body["gitRemote"], body["gitCommitter"]) == ("../remote.git", "Ada <ada@example.org>")
    assert body["gitCommitDate"] == git(checkout, "log", "-1", "--format=%cI")
    det("e", "create", *files)
    assert "gitCommit" not in created(accepting).json


def _changed(model):
    (model / "train.py").write_text("other")


def _no_upstream(model):
    git(model, "checkout", "-qb", "mine")


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (_changed, "differ from the commit; commit them or leave out --git"),
        (_no_upstream, "no upstream"),
        (lambda model: shutil.rmtree(model / ".git"), "is not the root of a git checkout"),
    ],
)
def test_a_commit_that_is_not_what_is_sent_is_refused(accepting, det, files, checkout, act, message):
    act(checkout)
    done = det("e", "create", *files, "-g")
    assert done.status == 1
    assert message in done.err
    assert accepting.calls_to("POST", BASE) == []


def test_overrides_are_merged_in(accepting, det, files):
    det("e", "create", *files, "--config", "searcher.max_length.batches=10", "--config", "description=1e-3,x")
    assert yamlfile.parse(created(accepting).json["config"]) == {
        "name": "x",
        "hyperparameters": {"lr": 0.001},
        "searcher": {"name": "single", "max_length": {"epochs": 1, "batches": 10}},
        "description": [0.001, "x"],
    }


@pytest.mark.parametrize(
    ("base", "overrides", "result"),
    [
        ({}, ["resources.slots=4"], {"resources": {"slots": 4}}),
        (
            {},
            ["bind_mounts=host_path: /a\ncontainer_path: /b"],
            {"bind_mounts": [{"host_path": "/a", "container_path": "/b"}]},
        ),
        ({}, ["data.url=http://h/x"], {"data": {"url": "http://h/x"}}),
        (
            {"searcher": {"name": "single", "max_length": {"epochs": 2}}},
            ["searcher.max_length.batches=10"],
            {"searcher": {"name": "single", "max_length": {"epochs": 2, "batches": 10}}},
        ),
        (
            {"hyperparameters": {"lr": 1}},
            ["hyperparameters.lr=0.1,0.2"],
            {"hyperparameters": {"lr": [0.1, 0.2]}},
        ),
        ({"a": None}, ["a.b=1"], {"a": {"b": 1}}),
        ({"a": 5}, ["a.b=1"], {"a": {"b": 1}}),
        ({"a": {"b": 1}}, ["a=2"], {"a": 2}),
        ({"a": {"b": 1}}, ["a={c: 2, d: [1, 2]}"], {"a": {"b": 1, "c": 2, "d": [1, 2]}}),
        ({}, ["a=[1, x]"], {"a": [1, "x"]}),
        ({}, ["a=1", "a=2"], {"a": 2}),
        ({}, ["a=1e-3"], {"a": 0.001}),
        ({}, ["a=b=c"], {"a": "b=c"}),
        ({}, ["a="], {"a": None}),
        ({}, ["a=yes"], {"a": "yes"}),
    ],
)
def test_overrides(base, overrides, result):
    assert merged(base, overrides) == result


@pytest.mark.parametrize(
    ("override", "message"), [("a", "KEY=VALUE"), ("=1", "KEY=VALUE"), ("a=[1", "cannot read the value")]
)
def test_overrides_that_make_no_sense(override, message):
    with pytest.raises(Failure, match=message):
        merged({}, [override])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2\n", "c.yaml, line 2, column 1: duplicate key 'a'"),
        ("a: [", "c.yaml, line 1, column"),
        ("- a\n", "c.yaml, line 1, column 1: a configuration is a map of fields, not a list"),
        ("", "not empty"),
        ("hello", "not 'hello'"),
    ],
)
def test_a_bad_configuration_is_refused_before_anything_is_sent(accepting, det, files, text, message):
    files[0].write_text(text)
    result = det("e", "create", *files)
    assert result.status == 1
    assert message in result.err
    assert result.err.startswith("Failed to create an experiment: ")
    assert accepting.calls_to("POST", BASE) == []


@pytest.mark.parametrize(
    "words",
    [
        ("e", "create", "c.yaml", "."),
        ("preview-search", "c.yaml"),
        ("template", "create", "x", "c.yaml"),
        ("cmd", "run", "--config-file", "c.yaml", "true"),
        ("workspace", "create", "x", "--checkpoint-storage-config-file", "c.yaml"),
    ],
)
def test_a_file_that_an_editor_saved_as_utf_16_needs_no_traceback(
    accepting, det, tmp_path, monkeypatch, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text("name: x", encoding="utf-16")
    done = det(*words)
    assert (done.status, "c.yaml is not UTF-8 text: invalid start byte at byte 0" in done.err) == (1, True)
    assert "Traceback" not in done.err


def test_a_missing_configuration(accepting, det, files):
    done = det("e", "create", "missing.yaml", files[1])
    assert (done.status, "cannot read missing.yaml: No such file" in done.err) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ("preview-search", "missing.yaml"),
        ("template", "create", "x", "missing.yaml"),
        ("template", "set-value", "config", "x", "missing.yaml"),
        ("cmd", "run", "--config-file", "missing.yaml", "true"),
        ("notebook", "start", "--config-file", "missing.yaml"),
        ("workspace", "create", "x", "--checkpoint-storage-config-file", "missing.yaml"),
    ],
)
def test_a_file_that_is_not_there_is_a_slip_of_typing_as_in_0_25(accepting, det, words):
    done = det(*words)
    assert (done.status, "cannot read missing.yaml: No such file" in done.err) == (2, True)


def test_a_file_instead_of_a_directory(accepting, det, files):
    result = det("e", "create", files[0], files[0])
    assert result.status == 1
    assert "must be a directory, maybe use an include instead?" in result.err


def test_too_much_is_refused(accepting, det, files):
    os.truncate(files[1] / "data.py", 95 * 1024 * 1024)
    result = det("e", "create", *files)
    assert result.status == 1
    assert ".detignore" in result.err
    assert accepting.calls_to("POST", BASE) == []


def test_every_problem_of_the_configuration_is_shown(master, det, files):
    master.answer(
        "POST", BASE, Status(400, {"error": {"error": "searcher.name: unknown\nresources.slots: negative"}})
    )
    result = det("e", "create", *files)
    assert result.status == 1
    assert "searcher.name: unknown\nresources.slots: negative" in result.err


def test_warnings_go_to_stderr(master, det, files):
    master.answer(
        "POST", BASE, {"experiment": {"id": 1}, "warnings": ["LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"]}
    )
    result = det("e", "create", *files)
    assert result.status == 0
    assert "more slots than the cluster has" in result.err


def log(number):
    return {"id": number, "timestamp": f"2023-08-01T12:00:0{number}Z", "message": f"line {number}\n"}


@pytest.mark.parametrize(
    ("trial", "experiment", "status", "message"),
    [
        ("COMPLETED", "COMPLETED", 0, ""),
        ("CANCELED", "RUNNING", 0, ""),
        ("ERROR", "RUNNING", 1, "Trial 5 is ERROR: exit code 3\n"),
        ("COMPLETED", "ERROR", 1, "Experiment 1 is ERROR\n"),
    ],
)
def test_follow_shows_the_first_trials_log(accepting, det, files, trial, experiment, status, message):
    first = {"id": 5, "startTime": "2023-08-01T12:00:00Z"}
    later = {"id": 4, "startTime": "2023-08-01T12:00:09Z"}
    accepting.answer("GET", f"{BASE}/1/trials", {"trials": []}, {"trials": [later, first]})
    states = [{"experiment": {"id": 1, "state": f"STATE_{state}"}} for state in ("QUEUED", experiment)]
    accepting.answer("GET", f"{BASE}/1", *states)
    ended = {"trial": {"id": 5, "state": f"STATE_{trial}", "stateReason": "exit code 3"}}
    accepting.answer("GET", "/api/v1/trials/5", ended)
    accepting.answer("GET", "/api/v1/trials/5/logs", Lines([{"result": log(1)}, {"result": log(2)}]))
    result = det("e", "create", *files, "-f")
    assert (result.status, result.err) == (status, message)
    assert result.out.splitlines()[1:] == [
        "Created experiment 1",
        "Waiting for first trial to begin...",
        "Following first trial with ID 5",
        "line 1",
        "line 2",
        "Trial log stream ended. To reopen log stream, run: det trial logs -f 5",
    ]


def test_follow_of_an_experiment_that_fails_without_a_trial(accepting, det, files):
    accepting.answer("GET", f"{BASE}/1/trials", {"trials": []})
    accepting.answer(
        "GET", f"{BASE}/1", {"experiment": {"state": "STATE_ERROR", "stateReason": "no such pool"}}
    )
    result = det("e", "create", *files, "-f")
    assert result.status == 1
    assert "experiment 1 is ERROR: no such pool" in result.err


def test_ctrl_c_leaves_the_experiment_alone(accepting, start_det, files):
    released = threading.Event()

    def lines():
        yield {"result": log(1)}
        released.wait(60)

    accepting.answer("GET", f"{BASE}/1/trials", {"trials": [{"id": 5}]})
    accepting.answer("GET", "/api/v1/trials/5/logs", Lines(lines()))
    process = start_det("e", "create", *files, "-f")
    for line in process.stdout:
        if line == "line 1\n":
            break
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(30) == 3
    finally:
        released.set()
    assert "Experiment 1 keeps running" in process.stderr.read()
    assert {call.path for call in accepting.calls if call.method == "POST"} <= {BASE, "/api/v1/auth/login"}


def test_a_terminal_sees_the_line_grow_and_a_bar(accepting, det_on_terminal, files):
    (files[1] / "big.bin").write_bytes(os.urandom(3_000_000))
    status, shown = det_on_terminal("e", "create", *files)
    assert status == 0
    lines = shown.split("\r")
    assert f"Preparing files (.../{files[1].name}) to send to master... 2.9MB and 1 files" in lines
    assert f"Preparing files (.../{files[1].name}) to send to master... 2.9MB and 3 files" in lines
    assert "\nCreated experiment 1" in re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", shown).replace("\r", "\n")
    assert "Sending" in shown
