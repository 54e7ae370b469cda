"""What experiments and tasks take over from their workspace, their pool and the cluster."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml

from services.kit.settings import BadSettings
from services.rest_requests import task_defaults
from tests.gateway.harness import Harness

CONFIG = "name: x\nentrypoint: python3 t.py\nsearcher: {name: single, metric: loss, max_length: 3}\n"
S3 = {"type": "s3", "bucket": "vision", "access_key": "ak", "secret_key": "very-secret"}
GROUP = {"agentUid": 1007, "agentGid": 1008, "agentUser": "vision", "agentGroup": "lab"}


@pytest.fixture
def vision(gateway):
    """Workspace 2 with project 2 in it, and a storage of its own."""
    gateway.log_in("admin")
    made = {"name": "Vision", "checkpointStorageConfig": S3, "agentUserGroup": GROUP}
    gateway.post("/api/v1/workspaces", made)
    gateway.post("/api/v1/workspaces/2/projects", {"name": "Digits"})
    return gateway


def commands_of_kind(gateway, kind):
    return [command for command in gateway.peers.commands if type(command).__name__ == kind]


def patch(gateway, path, body):
    answer = gateway.send("PATCH", path, body)
    assert answer.status_code == 200, answer.text


def submit(gateway, text=CONFIG, **more):
    answer = gateway.send("POST", "/api/v1/experiments", {"config": text, "validateOnly": True, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["config"]


def test_it_is_shown_without_its_keys_and_lies_sealed_in_the_log(vision):
    shown = vision.get("/api/v1/workspaces/2")["workspace"]
    assert shown["agentUserGroup"] == GROUP
    storage = shown["checkpointStorageConfig"]
    assert (storage["type"], storage["bucket"], storage["secret_key"]) == ("s3", "vision", "*" * 8)
    log = b"".join(message.body for message in vision.journal.streams["CONTROL"])
    assert b"very-secret" not in log


def test_experiments_of_the_workspace_are_stored_there(vision, tmp_path):
    storage = {"type": "shared_fs", "host_path": str(tmp_path), "storage_path": "vision"}
    patch(vision, "/api/v1/workspaces/2", {"checkpointStorageConfig": storage})
    by_name = submit(vision, CONFIG + "workspace: Vision\nproject: Digits\n")
    by_id = submit(vision, projectId=2)
    for config in (by_name, by_id):
        assert config["checkpoint_storage"]["storage_path"] == "vision"
    assert submit(vision)["checkpoint_storage"].get("storage_path") is None
    own = CONFIG + f"checkpoint_storage: {{type: directory, container_path: {tmp_path}}}\n"
    assert submit(vision, own, projectId=2)["checkpoint_storage"]["type"] == "directory"


def test_its_tasks_run_as_its_user(vision):
    vision.post("/api/v1/commands", {"config": {"entrypoint": ["true"]}, "workspaceId": 2})
    vision.post("/api/v1/commands", {"config": {"entrypoint": ["true"]}})
    users = [command.agent_user for command in commands_of_kind(vision, "SubmitTask")]
    assert (users[0].uid, users[0].user) == (1007, "vision")
    assert users[1] is None


def test_a_change_with_masks_keeps_the_keys_and_an_empty_one_takes_all_away(vision):
    before = vision.catalogue.state.workspaces[2]
    shown = vision.get("/api/v1/workspaces/2")["workspace"]["checkpointStorageConfig"]
    patch(vision, "/api/v1/workspaces/2", {"checkpointStorageConfig": shown})
    assert vision.catalogue.state.workspaces[2] == before
    patch(vision, "/api/v1/workspaces/2", {"name": "Seeing"})
    renamed_workspace = vision.catalogue.state.workspaces[2]
    assert msgspec.structs.replace(renamed_workspace, name="Vision", reason=before.reason) == before
    patch(vision, "/api/v1/workspaces/2", {"checkpointStorageConfig": {}, "agentUserGroup": {}})
    cleared_workspace = vision.catalogue.state.workspaces[2]
    assert (cleared_workspace.checkpoint_storage, cleared_workspace.agent_user) == (None, None)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"checkpointStorageConfig": {"type": "tape"}}, "checkpointStorageConfig: "),
        (
            {"checkpointStorageConfig": {"type": "azure", "credential": "k", "connection_string": "s"}},
            "credential and connection_string must not both be set",
        ),
        ({"agentUserGroup": {"agentUid": 7}}, "needs agentUser and agentGroup"),
    ],
)
def test_what_makes_no_sense_is_refused(vision, body, message):
    assert message in vision.refused(400, "PATCH", "/api/v1/workspaces/2", body)
    assert message in vision.refused(400, "POST", "/api/v1/workspaces", {"name": "w", **body})
    assert "is permanent" in vision.refused(
        400, "PATCH", "/api/v1/workspaces/1", {"checkpointStorageConfig": S3}
    )


def test_only_administrators_say_who_tasks_run_as(gateway):
    gateway.log_in("determined")
    gateway.post("/api/v1/workspaces", {"name": "Mine"})
    gateway.refused(403, "PATCH", "/api/v1/workspaces/2", {"agentUserGroup": GROUP})
    gateway.refused(403, "POST", "/api/v1/workspaces", {"name": "w", "agentUserGroup": GROUP})
    patch(gateway, "/api/v1/workspaces/2", {"checkpointStorageConfig": S3})


DEFAULTS = {
    "task_container_defaults": {
        "environment_variables": ["HF_HOME=/data/hf", "A=low"],
        "bind_mounts": [{"host_path": "/data", "container_path": "/data"}],
        "dtrain_network_interface": "eth0",
    },
    "resource_pools": [
        {"pool_name": "default"},
        {"pool_name": "a100", "task_container_defaults": {"shm_size_bytes": 1 << 33}},
    ],
}


@pytest.fixture
def with_defaults(tmp_path):
    path = tmp_path / "pools.yaml"
    path.write_text(yaml.safe_dump(DEFAULTS))
    made = Harness(tmp_path, pools=path)
    made.log_in("determined")
    yield made
    made.close()


def test_task_container_defaults_go_under_configurations(with_defaults):
    text = CONFIG + "environment: {environment_variables: [A=high]}\n"
    config = submit(with_defaults, text)
    assert config["environment"]["environment_variables"]["cpu"] == ["HF_HOME=/data/hf", "A=low", "A=high"]
    assert config["bind_mounts"][0]["host_path"] == "/data"
    of_pool = task_defaults.read(with_defaults.backend.settings.pools).for_pool("a100")
    assert of_pool == {"resources": {"shm_size": 1 << 33}}, "in place of the cluster's"


def test_and_under_those_of_commands(with_defaults):
    config = {"entrypoint": ["true"], "environment": {"environment_variables": ["A=high"]}}
    with_defaults.post("/api/v1/commands", {"config": config})
    (command,) = commands_of_kind(with_defaults, "SubmitTask")
    assert command.config["environment"]["environment_variables"]["cuda"][-2:] == ["A=low", "A=high"]
    assert command.config["bind_mounts"][0]["host_path"] == "/data"


def test_the_file_is_checked_at_the_start(tmp_path: Path):
    path = tmp_path / "pools.yaml"
    path.write_text("task_container_defaults: {shm_size_bites: 3, environment_variables: 7}\n")
    with pytest.raises(BadSettings, match=r"(?s)shm_size_bites is not a field.*neither a list of strings"):
        task_defaults.read(path)
