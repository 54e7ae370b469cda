"""Commands and TensorBoards over REST (REST spec, section 7), with the scheduler's real rules."""

from __future__ import annotations

import base64

import pytest

from det_contracts.events import scheduler, worker
from det_contracts.events.gateway import UserSet
from services.kit import task_tokens
from tests.gateway import stories as story
from tests.gateway.harness import TASK_KEY, Harness


@pytest.fixture
def here(gateway):
    gateway.apply(story.worker_here(slots=4))
    return gateway


def start(gateway, config=None, noun="command", **more):
    return gateway.post(f"/api/v1/{noun}s", {"config": config or {"entrypoint": ["echo hi"]}, **more})


def submitted(gateway, id):
    return gateway.catalogue.state.tasks[id]


def test_a_command_is_submitted_shown_and_killed(here):
    answer = start(here, {"entrypoint": ["echo", "a b"], "description": "greet"})
    command = answer["command"]
    assert (command["description"], command["state"], command["username"]) == (
        "greet",
        "STATE_QUEUED",
        "determined",
    )
    assert (command["jobId"], command["resourcePool"], answer["warnings"]) == ("task-1", "default", [])
    assert answer["config"]["entrypoint"] == ["echo", "a b"]
    assert here.get(f"/api/v1/commands/{command['id']}")["command"] == command
    assert [row["id"] for row in here.get("/api/v1/commands")["commands"]] == [command["id"]]
    assert here.get("/api/v1/commands", users="admin")["commands"] == []
    assert here.get("/api/v1/tasks/count")["commands"] == 1
    (summary,) = here.get("/api/v1/tasks")["allocationIdToSummary"].values()
    assert (summary["taskId"], summary["name"]) == (command["id"], f"Command {command['id']}")
    (job,) = here.get("/api/v1/job-queues")["jobs"]
    assert (job["type"], job["entityId"], job["name"]) == ("TYPE_COMMAND", command["id"], "greet")
    here.post(f"/api/v1/commands/{command['id']}/set_priority", {"priority": 7})
    assert here.get("/api/v1/job-queues")["jobs"][0]["priority"] == 7
    here.post(f"/api/v1/commands/{command['id']}/kill")
    shown = here.get(f"/api/v1/commands/{command['id']}")["command"]
    assert (shown["state"], shown["exitStatus"]) == ("STATE_TERMINATED", "killed by determined")
    assert here.get(f"/api/v1/tasks/{command['id']}")["task"]["taskType"] == "TASK_TYPE_COMMAND"
    assert here.get("/api/v1/job-queues")["jobs"] == []


@pytest.mark.parametrize(
    ("entrypoint", "argv"),
    [
        ("echo $X && ls", ["sh", "-c", "echo $X && ls"]),
        (["echo $X && ls"], ["sh", "-c", "echo $X && ls"]),
        (["echo", "$X"], ["echo", "$X"]),
    ],
)
def test_forms_of_a_command_line(here, entrypoint, argv):
    id = start(here, {"entrypoint": entrypoint})["command"]["id"]
    assert submitted(here, id).config["entrypoint"] == argv


def test_defaults_and_templates(here):
    here.post("/api/v1/templates", {"name": "t", "config": {"resources": {"slots": 2}, "description": "d"}})
    id = start(here, templateName="t")["command"]["id"]
    assert (submitted(here, id).name, here.catalogue.state.allocations[f"{id}.1"].slots) == ("d", 2)
    id = start(here)["command"]["id"]
    assert here.catalogue.state.allocations[f"{id}.1"].slots == 1
    assert submitted(here, id).name == "Command: echo hi"


def test_one_that_fits_nowhere_waits(here):
    answer = start(here, {"entrypoint": "x", "resources": {"slots": 5}})
    assert answer["command"]["state"] == "STATE_QUEUED"
    assert answer["warnings"] == ["LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"]
    assert "5 slots" in answer["notices"][0]


def test_the_same_key_starts_one(here):
    ids = {
        here.post("/api/v1/commands", {"config": {"entrypoint": "x"}}, headers={"Idempotency-Key": "k"})[
            "command"
        ]["id"]
        for _ in range(2)
    }
    assert len(ids) == 1
    assert len(here.get("/api/v1/commands")["commands"]) == 1


def test_those_of_one_workspace(here):
    space = here.post("/api/v1/workspaces", {"name": "vision"})["workspace"]["id"]
    start(here)
    there = start(here, workspaceId=space)["command"]
    assert there["workspaceId"] == space
    answer = here.get("/api/v1/commands", workspaceId=space)
    assert ([row["id"] for row in answer["commands"]], answer["pagination"]["total"]) == ([there["id"]], 1)
    assert len(here.get("/api/v1/commands", workspaceId=0)["commands"]) == 2


def test_files_come_along(here):
    content = base64.b64encode(b"print()").decode()
    start(here, files=[{"path": "x.py", "type": 48, "content": content}])
    (message,) = [m for m in here._stream() if b'"digest"' in m.body]
    assert b"scheduler.task.submitted" in message.body


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"config": {}}, 400, "config.entrypoint"),
        ({"config": {"entrypoint": []}}, 400, "config.entrypoint"),
        ({"config": {"entrypoint": "x", "resources": 3}}, 400, "config.resources"),
        ({"config": {"entrypoint": "x", "resources": {"slots": "two"}}}, 400, "config.resources.slots"),
        ({"config": {"entrypoint": "x", "resources": {"resource_pool": "moon"}}}, 404, "'moon' not found"),
        (
            {"config": {"entrypoint": "x", "environment": {"environment_variables": [1]}}},
            400,
            "environment_variables",
        ),
        (
            {"config": {"entrypoint": "x", "environment": {"environment_variables": {"A": "b"}}}},
            400,
            "NAME=VALUE",
        ),
        ({"config": {"entrypoint": "x"}, "templateName": "none"}, 404, "template 'none' not found"),
        ({"config": {"entrypoint": "x"}, "workspaceId": 9}, 404, "workspace '9' not found"),
        ({"config": {"entrypoint": "x", "work_dir": "data"}}, 400, "config.work_dir is 'data': the absolute"),
        (
            {
                "config": {"entrypoint": "x", "work_dir": "/data"},
                "files": [{"path": "x.py", "type": 48, "content": ""}],
            },
            400,
            "config.work_dir and a context directory",
        ),
    ],
)
def test_what_is_refused(here, body, status, message):
    assert message in here.refused(status, "POST", "/api/v1/commands", body)
    assert here.catalogue.state.tasks == {}


@pytest.mark.parametrize("noun", ["command", "notebook", "shell", "tensorboard"])
def test_unknown_fields_and_wrong_values_are_listed_together(here, noun):
    config = {
        "entrypoint": "x",
        "resorces": {},
        "searcher": {},
        "shell": {},
        "resources": {"slots": "two", "cpus": 1},
    }
    message = here.refused(400, "POST", f"/api/v1/{noun}s", {"config": config, "experimentIds": [1]})
    for problem in (
        'config.resorces: unknown field, did you mean "resources"?',
        "config.searcher: unknown field",
        "config.shell: unknown field",
        "config.resources.slots: ",
        "config.resources.cpus: unknown field",
    ):
        assert problem in message
    assert here.catalogue.state.tasks == {}


def test_all_fields_of_0_25_are_taken(here):
    config = {
        "description": "d",
        "entrypoint": ["x"],
        "bind_mounts": [{"host_path": "/data", "container_path": "data"}],
        "environment": {
            "image": {"cpu": "a", "cuda": "b"},
            "add_capabilities": ["SYS_ADMIN"],
            "ports": {"x": 1},
        },
        "resources": {"slots": 1, "priority": 7, "weight": 2, "shm_size": "1g", "devices": ["/dev/a:/dev/a"]},
        "idle_timeout": "30m",
        "notebook_idle_type": "activity",
        "tensorboard_args": ["--samples_per_plugin=images=5"],
        "work_dir": "/work",
        "debug": True,
        "slurm": {"slots_per_node": 2},
        "pbs": None,
    }
    for noun in ("command", "notebook", "shell"):
        assert start(here, config, noun)[noun]["description"] == "d"


def test_a_large_configuration_is_refused_or_read_elsewhere(here):
    large = {"entrypoint": "x", "work_dir": "w" * (1 << 20)}
    assert "larger than 1048576 bytes" in here.refused(400, "POST", "/api/v1/commands", {"config": large})
    unknown = {"entrypoint": "x", "wrok_dir": "w" * (8 << 10)}
    assert "wrok_dir: unknown" in here.refused(400, "POST", "/api/v1/commands", {"config": unknown})


def test_unknown_ones(here):
    id = start(here)["command"]["id"]
    for path in ("/api/v1/commands/none", f"/api/v1/tensorboards/{id}"):
        assert "not found" in here.refused(404, "GET", path)
        assert "not found" in here.refused(404, "POST", f"{path}/kill")


@pytest.fixture
def board(here):
    """A TensorBoard over experiment 1 and trial 2 of experiment 2."""
    here.apply(story.created(1), story.created(2), story.trial_created(1), story.trial_created(2, 2))
    return start(here, {}, "tensorboard", experimentIds=[1], trialIds=[2])["tensorboard"]


@pytest.mark.parametrize(("task_config", "idle_s"), [({}, 300.0), ({"idle_timeout": "2h"}, 7200.0)])
def test_a_tensorboard_knows_how_long_it_may_stay_unused(here, task_config, idle_s):
    here.apply(story.created(1))
    id = start(here, task_config, "tensorboard", experimentIds=[1])["tensorboard"]["id"]
    assert here.catalogue.state.tasks[id].config["tensorboard"]["idle_s"] == idle_s
    wrong = {"config": {"idle_timeout": "soon"}, "experimentIds": [1]}
    assert "config.idle_timeout" in here.refused(400, "POST", "/api/v1/tensorboards", wrong)


@pytest.mark.parametrize(("idle_timeout", "idle_s"), [(None, 600.0), ("1m", 60.0)])
def test_the_cluster_says_how_long_its_tensorboards_and_notebooks_may_stay_unused(
    tmp_path, idle_timeout, idle_s
):
    gateway = Harness(tmp_path, tensorboard_timeout=600.0, notebook_timeout=600.0)
    try:
        gateway.let_in()
        gateway.apply(story.worker_here(slots=4), story.created(1))
        config = {"idle_timeout": idle_timeout}
        board = start(gateway, config, "tensorboard", experimentIds=[1])["tensorboard"]
        assert submitted(gateway, board["id"]).config["tensorboard"]["idle_s"] == idle_s
        notebook = start(gateway, config, "notebook")["notebook"]
        assert submitted(gateway, notebook["id"]).config["serves"]["watched"] is True
        path = f"/api/v1/notebooks/{notebook['id']}/report_idle"
        gateway.send("PUT", path, {"notebookId": notebook["id"], "idle": True})
        assert [event.within_s for event in gateway.events_of(scheduler.TaskIdled)] == [idle_s]
    finally:
        gateway.close()


def test_a_tensorboard_knows_where_its_files_lie(here, board):
    assert (board["experimentIds"], board["trialIds"], board["serviceAddress"]) == ([1], [2], "")
    sources = submitted(here, board["id"]).config["tensorboard"]["sources"]
    assert [(source["experiment_id"], source["trial_ids"]) for source in sources] == [(1, [1]), (2, [2])]
    assert sources[0]["storage"]["type"] == "shared_fs"
    assert here.catalogue.state.allocations[f"{board['id']}.1"].slots == 0
    assert "tensorboard" not in here.get(f"/api/v1/tensorboards/{board['id']}")["config"]


@pytest.mark.parametrize(
    ("body", "status"), [({}, 400), ({"experimentIds": [9]}, 404), ({"trialIds": [9]}, 404)]
)
def test_tensorboards_of_nothing(here, body, status):
    here.refused(status, "POST", "/api/v1/tensorboards", body)


def test_a_task_reports_its_own_address(here, board):
    allocation = f"{board['id']}.1"
    path = f"/api/v1/allocations/{allocation}/proxy_address"
    here.apply(story.placed(allocation, "TENSORBOARD"))
    token = task_tokens.issue(TASK_KEY, allocation)
    headers = {"Authorization": f"Bearer {token}"}
    for wrong in ("", "host", "host:x", "host:99999", ":80"):
        answer = here.send("POST", path, {"proxyAddress": wrong}, headers=headers)
        assert answer.status_code == 400, wrong
    assert here.send("GET", f"/proxy/{board['id']}/").status_code == 503
    assert here.send("POST", path, {"proxyAddress": "127.0.0.1:10009"}, headers=headers).status_code == 200
    shown = here.get(f"/api/v1/tensorboards/{board['id']}")["tensorboard"]
    assert shown["serviceAddress"] == f"/proxy/{board['id']}/"
    assert "does not answer" in here.send("GET", f"/proxy/{board['id']}/x").json()["message"]
    here.apply(
        scheduler.AllocationEnded(
            allocation_id=allocation, kind="TENSORBOARD", run=1, outcome="succeeded", reason="over"
        )
    )
    assert here.send("GET", f"/proxy/{board['id']}/").status_code == 404
    assert here.get(f"/api/v1/tensorboards/{board['id']}")["tensorboard"]["serviceAddress"] == ""


def test_the_proxy_is_for_users(here, board):
    here.client.headers.pop("Authorization")
    assert here.send("GET", f"/proxy/{board['id']}/").status_code == 401


def test_a_notebook_may_be_looked_at_before(here):
    here.post("/api/v1/templates", {"name": "t", "config": {"resources": {"slots": 2}}})
    config = {"idle_timeout": "1h30m", "environment": {"environment_variables": ["MY_TOKEN=hush"]}}
    answer = start(here, config, "notebook", templateName="t", preview=True)
    assert answer["config"]["resources"]["slots"] == 2
    assert answer["config"]["environment"]["environment_variables"] == ["MY_TOKEN=********"]
    assert (answer["notebook"]["id"], here.get("/api/v1/notebooks")["notebooks"]) == ("", [])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"idle_timeout": "soon"}, "config.idle_timeout is 'soon'"),
        ({"idle_timeout": True}, "config.idle_timeout"),
        ({"idle_timeout": "0s"}, "more than 0"),
        ({"idle_timeout": "9" * 400 + "h"}, "ten years"),
        ({"notebook_idle_type": "moon"}, "one of kernels_or_terminals"),
    ],
)
def test_notebooks_that_are_refused(here, config, message):
    assert message in here.refused(400, "POST", "/api/v1/notebooks", {"config": config})
    assert here.catalogue.state.tasks == {}


def test_a_notebook_says_whether_it_is_used(here):
    notebook = start(here, {"idle_timeout": 90}, "notebook")["notebook"]
    other = start(here, {}, "notebook")["notebook"]
    path = "/api/v1/notebooks/{}/report_idle"
    for id in (notebook["id"], notebook["id"], other["id"]):
        assert here.send("PUT", path.format(id), {"notebookId": id, "idle": True}).status_code == 200
    (event,) = here.events_of(scheduler.TaskIdled)
    assert (event.task_id, event.idle, event.within_s) == (notebook["id"], True, 90.0)
    start(here, {"entrypoint": "x"})
    assert here.get("/api/v1/tasks/count") == {"commands": 1, "tensorboards": 0, "notebooks": 2, "shells": 0}


def test_the_key_to_a_shell_is_for_its_owner_and_lies_sealed(here):
    answer = start(here, {"description": "mine"}, "shell")
    shell = answer["shell"]
    assert shell["privateKey"].startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert shell["publicKey"].startswith("ssh-ed25519 ")
    assert "shell" not in answer["config"]
    assert "serves" not in answer["config"]
    assert here.get(f"/api/v1/shells/{shell['id']}")["shell"]["privateKey"] == shell["privateKey"]
    assert "privateKey" not in here.get("/api/v1/shells")["shells"][0]
    read = here.post("/api/v1/tokens", {"name": "r", "scope": "read"})["token"]
    reader_answer = here.send(
        "GET", f"/api/v1/shells/{shell['id']}", headers={"Authorization": f"Bearer {read}"}
    ).json()
    assert "privateKey" not in reader_answer["shell"]
    config = submitted(here, shell["id"]).config
    for place, name in (("shell", "private_key"), ("serves", "host_key")):
        assert config[place][name].startswith("sealed:1:")
    here.apply(UserSet(user_id=8, username="egon", reason="made"))
    here.let_in("egon")
    assert "privateKey" not in here.get(f"/api/v1/shells/{shell['id']}")["shell"]


def test_a_shell_is_ready_once_it_answers_and_says_who_to_log_in_as(here):
    shell = start(here, {}, "shell")["shell"]
    allocation = f"{shell['id']}.1"
    here.apply(story.placed(allocation, "SHELL"), worker.AllocationStarted("w-1", allocation))
    ready = lambda: here.get(f"/api/v1/tasks/{shell['id']}")["task"]["allocations"][0]["isReady"]  # noqa: E731
    assert not ready()
    path = f"/api/v1/allocations/{allocation}/proxy_address"
    headers = {"Authorization": f"Bearer {task_tokens.issue(TASK_KEY, allocation)}"}
    where = {"proxyAddress": "127.0.0.1:10009"}
    assert here.send("POST", path, {**where, "account": "a b"}, headers=headers).status_code == 400
    assert here.send("POST", path, {**where, "account": "ann"}, headers=headers).status_code == 200
    assert ready()
    assert here.get(f"/api/v1/shells/{shell['id']}")["shell"]["agentUserGroup"]["user"] == "ann"


@pytest.mark.parametrize("data", ["eyJwYXNzcGhyYXNlIjogIngifQ==", "%"])
def test_a_shell_whose_key_shall_have_a_passphrase_is_refused(here, data):
    here.refused(400, "POST", "/api/v1/shells", {"config": {}, "data": data})
