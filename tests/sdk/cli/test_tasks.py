"""`det task`, `det command`, `det tensorboard`, and what is not supported."""

from __future__ import annotations

import json

import pytest

from determined.cli import task_verbs
from tests.sdk.fake_gateway import Lines

TASK = {
    "taskId": "abc-1",
    "allocationId": "abc-1.1",
    "name": "Trial 1 (Experiment 1)",
    "slotsNeeded": 2,
    "registeredTime": "2026-01-01T00:00:00Z",
    "resources": [{"agentDevices": {"agent-b": {}}}, {"agentDevices": {"agent-a": {}}}],
    "schedulerType": "priority",
    "priority": 42,
    "resourcePool": "default",
    "proxyPorts": [{"port": 6006}],
}
WAITING = {**TASK, "taskId": "abd-2", "allocationId": "abd-2.1", "resources": [], "proxyPorts": []}
LINE = {"id": 1, "timestamp": "2026-01-01T00:00:00Z", "message": "hello\n"}


@pytest.fixture
def tasks(master):
    summaries = {task["allocationId"]: task for task in (TASK, WAITING)}
    master.answer("GET", "/api/v1/tasks", {"allocationIdToSummary": summaries})
    for id in ("abc-1", "gone-1", "c-1"):
        master.answer("GET", f"/api/v1/tasks/{id}/logs", Lines([{"result": LINE}]))
        master.answer("GET", f"/api/v1/tasks/{id}", {"task": {"endTime": "2026-01-01T00:00:01Z"}})
    return master


def test_list_tasks(tasks, det):
    rows = det("task", "list", "--csv").out.splitlines()
    assert rows[0] == (
        "Task ID,Allocation ID,Name,Slots Needed,Registered Time,Agent,Priority,Resource Pool,Ports"
    )
    assert rows[1] == (
        'abc-1,abc-1.1,Trial 1 (Experiment 1),2,2026-01-01 00:00:00+0000,"agent-a, agent-b",42,default,6006'
    )
    assert ",unassigned," in rows[2]
    assert set(json.loads(det("task", "--json").out)) == {"abc-1.1", "abd-2.1"}


@pytest.mark.parametrize("typed", ["abc", "abc-1", "gone-1"])
def test_task_logs_by_how_the_id_begins(tasks, det, typed):
    first, last = det("task", "logs", "-f", typed).out.splitlines()
    assert first == "hello"
    assert last.startswith("Task log stream ended. To reopen log stream, run: det task logs -f ")


def test_an_id_that_may_mean_several(tasks, det):
    done = det("task", "logs", "ab")
    assert (done.status, "abc-1, abd-2" in done.err) == (1, True)


COMMAND = {
    "id": "c-1",
    "username": "ann",
    "description": "a command",
    "state": "STATE_RUNNING",
    "exitStatus": "",
    "resourcePool": "default",
    "workspaceId": 9,
}


@pytest.fixture
def commands(tasks):
    tasks.answer("GET", "/api/v1/workspaces", {"workspaces": [{"id": 9, "name": "vision"}]})
    tasks.answer("POST", "/api/v1/commands", {"command": COMMAND, "config": {}})
    tasks.answer("GET", "/api/v1/commands", {"commands": [COMMAND, {**COMMAND, "id": "d-1"}]})
    ended = {**COMMAND, "exitStatus": "exit code 0"}
    tasks.answer("GET", "/api/v1/commands/c-1", {"command": ended, "config": {"entrypoint": ["ls"]}})
    tasks.answer("POST", "/api/v1/commands/c-1/kill", {})
    return tasks


def test_run_a_command(commands, det, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "code.py").write_text("pass")
    done = det("cmd", "run", "--config", "resources.slots=2", "-c", folder, "python3", "code.py", "--fast")
    assert done.status == 0
    assert done.out.splitlines()[:2] == ["Launched command (id: c-1).", "hello"]
    (call,) = commands.calls_to("POST", "/api/v1/commands")
    assert call.json["config"] == {"resources": {"slots": 2}, "entrypoint": ["python3", "code.py", "--fast"]}
    assert [item["path"] for item in call.json["files"]] == ["code.py"]


@pytest.mark.parametrize("status", ["exit code 3", "killed by ann", "killed by SIGKILL (exit code 137)"])
def test_a_command_that_fails_ends_det_with_status_1(commands, det, status):
    failed = {**COMMAND, "exitStatus": status}
    commands.answer("GET", "/api/v1/commands/c-1", {"command": failed, "config": {}})
    done = det("cmd", "run", "false")
    assert (done.status, f"Command c-1 failed: {status}" in done.err) == (1, True)
    assert det("cmd", "run", "-d", "false").status == 0


@pytest.mark.parametrize(
    ("answer", "warning"),
    [
        ({"notices": ["pool 'default' has 4 slots"]}, "Warning: pool 'default' has 4 slots\n"),
        ({}, "Warning: this asks for more slots than the cluster has at present; it waits for more.\n"),
    ],
    ids=["ours", "0.25"],
)
def test_a_command_that_cannot_start_yet_is_warned_of_in_words(commands, det, answer, warning):
    warnings = {"warnings": ["LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"], **answer}
    commands.answer("POST", "/api/v1/commands", {"command": COMMAND, "config": {}, **warnings})
    assert det("cmd", "run", "-d", "ls").err == warning


def test_run_a_command_and_leave_it(commands, det, tmp_path):
    (tmp_path / "c.yaml").write_text("description: x\n")
    (tmp_path / "one").write_text("1")
    words = ("--config-file", tmp_path / "c.yaml", "-i", tmp_path / "one", "--template", "t", "-w", "vision")
    assert det("command", "run", *words, "-d", "--", "ls", "-l").out == "c-1\n"
    body = commands.calls_to("POST", "/api/v1/commands")[0].json
    assert body["config"] == {"description": "x", "entrypoint": ["ls", "-l"]}
    assert (body["templateName"], body["workspaceId"]) == ("t", 9)
    assert [item["path"] for item in body["files"]] == ["one"]
    assert det("cmd", "run").status == 1


def test_volumes_are_bind_mounts(commands, det):
    """After those that the configuration has."""
    words = (
        "--config",
        "bind_mounts=host_path: /a\ncontainer_path: /b",
        "-v",
        "/tmp:/data",
        "--volume",
        "/c:/d",
    )
    assert det("cmd", "run", *words, "-d", "ls").status == 0
    (call,) = commands.calls_to("POST", "/api/v1/commands")
    assert call.json["config"]["bind_mounts"] == [
        {"host_path": "/a", "container_path": "/b"},
        {"host_path": "/tmp", "container_path": "/data"},
        {"host_path": "/c", "container_path": "/d"},
    ]
    refused = det("cmd", "run", "-v", "/tmp", "-d", "ls")
    assert refused.status == 1
    assert "'--volume /tmp' is not of the form HOST_PATH:CONTAINER_PATH" in refused.err


def test_list_and_end_commands(commands, det):
    assert det("cmd", "list", "-q").out == "c-1\nd-1\n"
    assert commands.calls[-1].query == {"users": ["determined"]}
    assert det("cmd", "--csv").out.splitlines()[:2] == [
        "id,username,description,state,exitStatus,resourcePool,workspaceName",
        "c-1,ann,a command,RUNNING,,default,vision",
    ]
    first = json.loads(det("cmd", "ls", "-a", "--json").out)[0]
    assert (first["workspaceName"], first["state"]) == ("vision", "RUNNING")
    assert commands.calls_to("GET", "/api/v1/commands")[-1].query == {}
    assert det("cmd", "ls", "-a", "-q", "-w", "vision").status == 0
    assert commands.calls[-1].query == {"workspaceId": ["9"]}
    assert det("cmd", "kill", "c").out == "Killed command c-1\n"
    done = det("cmd", "kill", "-f", "d", "c")
    assert (done.status, done.out) == (0, "Killed command c-1\n")
    assert "command d was not killed" in done.err
    assert det("cmd", "kill", "d", "c").status == 1
    commands.answer("POST", "/api/v1/commands/c-1/set_priority", {})
    assert det("cmd", "set", "priority", "c", 7).out == "Set priority of command c-1 to 7\n"
    assert commands.calls_to("POST", "/api/v1/commands/c-1/set_priority")[0].json == {"priority": 7}
    assert det("cmd", "config", "c-").out == "entrypoint:\n- ls\n"
    assert det("cmd", "logs", "c-1").out.splitlines()[0] == "hello"


BOARD = {"id": "b-1", "state": "STATE_RUNNING", "experimentIds": [1, 2], "serviceAddress": "/proxy/b-1/"}


@pytest.fixture
def boards(master, monkeypatch):
    monkeypatch.setattr(task_verbs, "_POLL_S", 0)
    monkeypatch.setattr(task_verbs.webbrowser, "open", lambda address: False)
    queued = {**BOARD, "state": "STATE_QUEUED", "serviceAddress": None}
    master.answer("POST", "/api/v1/tensorboards", {"tensorboard": queued})
    master.answer("GET", "/api/v1/tensorboards", {"tensorboards": [BOARD]})
    master.answer("GET", "/api/v1/tensorboards/b-1", {"tensorboard": queued}, {"tensorboard": BOARD})
    return master


def test_start_a_tensorboard(boards, det):
    done = det("tensorboard", "start", "1", "2,3", "-t", "7,8", "--no-browser")
    assert done.out.splitlines()[-1] == f"TensorBoard is running at: {boards.url}/proxy/b-1/"
    body = boards.calls_to("POST", "/api/v1/tensorboards")[0].json
    assert (body["experimentIds"], body["trialIds"]) == ([1, 2, 3], [7, 8])


def test_a_tensorboard_that_is_left_opened_or_ends(boards, det):
    assert det("tensorboard", "start", "-d", 1).out == "b-1\n"
    assert "No browser" in det("tensorboard", "open", "b").out
    ended = {"tensorboard": {**BOARD, "state": "STATE_TERMINATED"}}
    boards.answer("GET", "/api/v1/tensorboards/b-1", ended)
    done = det("tensorboard", "open", "b")
    assert (done.status, "has ended" in done.err) == (1, True)
    assert det("tensorboard", "start").status == 1
    boards.answer("GET", "/api/v1/workspaces", {"workspaces": []})
    assert det("tensorboard", "--csv").out.splitlines() == [
        "id,username,description,state,experimentIds,trialIds,exitStatus,resourcePool,workspaceName",
        'b-1,,,RUNNING,"1, 2",,,,',
    ]


@pytest.mark.parametrize("words", ["dev bindings list", "oauth client list", "auth login -p x"])
def test_what_is_not_supported_says_so(det, words):
    done = det(*words.split())
    assert (done.status, "not supported" in done.err) == (1, True)
    assert words.split()[0] in det("help").out.replace(",", "").split() or words.startswith("res")
