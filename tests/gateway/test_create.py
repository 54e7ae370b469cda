"""Submitting experiments (REST spec, section 3.1)."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import tarfile

import msgspec
import pytest

from det_contracts import queries
from det_contracts.commands import CreateExperiment, SubmitTask
from det_contracts.events import checkpoints
from det_contracts.events.gateway import AgentUser, ProjectSet
from services.submission import archive, submit
from tests.gateway import stories as story

PATH = "/api/v1/experiments"
YAML = """
name: first try   # a comment
entrypoint: python3 train.py
hyperparameters:
  lr: 1e-3
searcher:
  name: single
  metric: loss
  max_length: 100
"""


def _item(path, data=b"", **changes):
    text = base64.b64encode(data).decode()
    return {"path": path, "type": 48, "content": text, "mtime": "1700000000", "mode": 420, **changes}


FILES = [_item("train.py", b"print(1)\n"), _item("pkg", type=53, mode=493), _item("pkg/a.py", b"x = 1\n")]


def _submit(gateway, config=YAML, **body):
    return gateway.post(PATH, {"config": config, "modelDefinition": FILES, **body})


def _refusal(gateway, config=YAML, **body):
    return gateway.refused(400, "POST", PATH, {"config": config, "modelDefinition": FILES, **body})


def test_an_experiment_is_made_of_configuration_and_code(open_gateway):
    answer = _submit(open_gateway, activate=True)
    assert answer["experiment"]["id"] == 1
    assert answer["experiment"]["state"] == "STATE_QUEUED"
    assert answer["experiment"]["searcherType"] == "single"
    assert answer["experiment"]["originalConfig"] == YAML
    assert answer["config"]["hyperparameters"] == {"lr": 0.001}
    assert answer["config"]["resources"]["resource_pool"] == "default"
    assert answer["warnings"] == ["LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"]
    (command,) = open_gateway.peers.commands
    assert isinstance(command, CreateExperiment)
    assert (command.user, command.activate, command.request_key) == ("determined", True, "")
    with open_gateway.backend.blobs.open(command.context.digest) as file:
        content = file.read()
    assert len(content) == command.context.size_bytes
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = {member.name: member for member in archive}
        assert sorted(members) == ["pkg", "pkg/a.py", "train.py"]
        assert members["pkg"].isdir()
        assert (members["pkg"].mode, members["train.py"].mode) == (0o755, 0o644)
        assert members["train.py"].mtime == 1_700_000_000
        assert archive.extractfile("pkg/a.py").read() == b"x = 1\n"
    shown = open_gateway.get("/api/v1/experiments/1/model_def")
    assert base64.b64decode(shown["b64Tgz"]) == content


@pytest.mark.parametrize(("slots", "can_start"), [(1, True), (64, False)])
def test_nobody_is_asked_about_an_experiment_that_is_about_to_start(open_gateway, slots, can_start):
    """Who places its trials would have to answer first."""
    open_gateway.apply(story.worker_here())
    config = YAML + f"resources: {{slots_per_trial: {slots}}}\n"
    shown = _submit(open_gateway, config, activate=True)["experiment"]
    assert open_gateway.peers.asked_at.keys().isdisjoint(
        (queries.SearchProgress, queries.Waiting, queries.Pools)
    )
    assert (shown["state"], shown["canStart"], shown["progress"]) == ("STATE_QUEUED", can_start, None)
    # As it goes on is a question of its own, with the same answer to what is known from the start.
    later = open_gateway.get(f"{PATH}/1")["experiment"]
    assert open_gateway.peers.asked_at.keys() >= {queries.SearchProgress, queries.Waiting, queries.Pools}
    assert {**shown, "duration": None} == {**later, "duration": None}


def test_snake_case_paused_and_a_worker_that_is_large_enough(open_gateway):
    open_gateway.apply(story.worker_here())
    body = {"config": YAML, "model_definition": FILES, "parent_id": None, "validate_only": False}
    answer = open_gateway.post(PATH, body)
    assert answer["experiment"]["state"] == "STATE_PAUSED"
    assert answer["warnings"] == []


@pytest.mark.parametrize(
    ("code_fields", "expected"),
    [
        ({}, ""),
        ({"gitRemote": None, "gitCommit": None, "gitCommitter": None, "gitCommitDate": None}, ""),
        ({"gitCommit": "1924202"}, "commit 1924202"),
        (
            {
                "gitRemote": "https://ada:secret@git.example.org/x.git",
                "gitCommit": "1924202",
                "gitCommitter": "Ada <ada@example.org>",
                "gitCommitDate": "2026-11-23",
            },
            "commit 1924202 of https://git.example.org/x.git, by Ada <ada@example.org> on 2026-11-23",
        ),
    ],
)
def test_the_commit_of_a_checkout_is_stored_without_passwords(open_gateway, code_fields, expected):
    _submit(open_gateway, **code_fields)
    (command,) = open_gateway.peers.commands
    assert command.commit == expected


def test_the_same_code_is_stored_once(open_gateway):
    _submit(open_gateway)
    _submit(open_gateway, modelDefinition=FILES[::-1])
    first, second = (command.context for command in open_gateway.peers.commands)
    assert first == second


def test_name_and_seed_are_drawn_when_they_are_missing(open_gateway):
    config = YAML.replace("name: first try", "description: nameless")
    done = _submit(open_gateway, config)["config"]
    assert done["name"].startswith("Experiment (")
    assert done["reproducibility"]["experiment_seed"] > 1_600_000_000


def test_validating_checks_everything_and_stores_nothing(open_gateway, tmp_path):
    answer = _submit(open_gateway, validateOnly=True)
    assert (answer["experiment"]["id"], answer["experiment"]["archived"]) == (0, False)
    assert answer["config"]["name"] == "first try"
    assert open_gateway.peers.commands == []
    assert not (tmp_path / "blobs").exists()
    assert not (tmp_path / "checkpoints").exists()
    assert "<config>" in _refusal(open_gateway, "max_restarts: -1", validateOnly=True)


def test_every_error_of_a_configuration_names_its_path(open_gateway):
    config = YAML.replace("max_length: 100", "max_length: -1\n  mtric: x") + "max_restarts: none\nspeed: 3\n"
    message = _refusal(open_gateway, config)
    for path in ("<config>.max_restarts", "<config>.searcher.max_length", "mtric", "speed"):
        assert path in message, message
    assert message.count("\n") >= 3


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("a: [1,\nb: 2", "line 2, column 5"),
        ("name: x\nname: y", "line 2, column 1: found duplicate key 'name'"),
        ("- a list", "<config>"),
        ("", "<config>"),
        ("name: \x07", "YAML"),
        ("a: &a [x]\nb: *c", "line 2"),
        (YAML + "entrypoint: x", "duplicate key 'entrypoint'"),
        (YAML.replace("entrypoint: python3 train.py", ""), "managed experiments require entrypoint"),
        (YAML.replace("single", "quantum"), "searcher"),
        (YAML + "resources: {resource_pool: gold}", "resource pool gold does not exist"),
        (YAML + "data: {x: '" + "a" * (1 << 20) + "'}", "larger than"),
    ],
)
def test_configurations_that_cannot_be_are_400(open_gateway, config, reason):
    assert reason in _refusal(open_gateway, config)
    assert open_gateway.peers.commands == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"modelDefinition": [_item("../out.py")]}, "is outside of it"),
        ({"modelDefinition": [_item("/etc/passwd")]}, "is outside of it"),
        ({"modelDefinition": [_item("a/../../b")]}, "is outside of it"),
        ({"modelDefinition": [_item("")]}, "is outside of it"),
        ({"modelDefinition": [_item("link", type=50)]}, "neither a file"),
        ({"modelDefinition": [_item("a.py"), _item("./a.py")]}, "twice"),
        ({"modelDefinition": [_item("a.py", content="%%%")]}, "not base64"),
        ({"template": "big"}, "template 'big' not found"),
        ({"modelDefinition": "x"}, "modelDefinition"),
    ],
)
def test_impossible_requests_get_400(open_gateway, body, reason):
    assert reason in _refusal(open_gateway, **body)
    assert open_gateway.peers.commands == []


def test_what_does_not_exist_is_404(open_gateway):
    body = {"config": YAML}
    assert "project '7'" in open_gateway.refused(404, "POST", PATH, {**body, "projectId": 7})
    assert "experiment '7'" in open_gateway.refused(404, "POST", PATH, {**body, "parentId": 7})


def test_a_fork_has_its_parents_code(open_gateway):
    _submit(open_gateway)
    answer = open_gateway.post(PATH, {"config": YAML, "parentId": 1})
    first, second = open_gateway.peers.commands
    assert second.context == first.context
    assert second.parent_id == 1
    assert answer["experiment"]["forkedFrom"] == 1


UUID = "7d2c0d3a-3a7c-4a2f-9d43-5a8fdb8a2e10"
OTHER = "11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize(
    ("source", "checkpoint"),
    [
        ({"source_trial_id": 1}, OTHER),
        ({"source_checkpoint_uuid": UUID}, UUID),
        ({"source_trial_id": 1, "source_checkpoint_uuid": UUID}, OTHER),
    ],
)
def test_a_warm_start_is_resolved_at_submit(open_gateway, source, checkpoint):
    open_gateway.apply(story.created(1), story.trial_created(1), *story.running(1))
    open_gateway.apply(story.stored(1, UUID, 10), story.stored(1, OTHER, 20))
    lines = "".join(f"  {name}: {value}\n" for name, value in source.items())
    _submit(open_gateway, YAML + lines)
    assert open_gateway.peers.commands[0].source_checkpoint == checkpoint
    open_gateway.apply(story.deleted(OTHER))
    _submit(open_gateway, YAML + "  source_trial_id: 1\n")
    assert open_gateway.peers.commands[1].source_checkpoint == UUID


@pytest.mark.parametrize(("globs", "usable"), [((), True), (("*.pt",), False), (None, False)])
def test_a_warm_start_while_a_task_is_at_the_checkpoint(open_gateway, globs, usable):
    open_gateway.apply(story.created(1), story.trial_created(1), *story.running(1), story.stored(1, UUID, 10))
    deletion = {"task_id": "1.gc-1", "experiment_id": 1, "uuids": (UUID,), "reason": "asked", "globs": globs}
    open_gateway.apply(checkpoints.DeletionRequested(**deletion))
    body = f"{YAML}  source_checkpoint_uuid: {UUID}\n"
    if usable:
        _submit(open_gateway, body)
    else:
        assert f"no checkpoint found with UUID {UUID}" in _refusal(open_gateway, body)
    open_gateway.apply(checkpoints.DeletionFinished(**deletion, deleted=True))
    if globs is not None:
        _submit(open_gateway, body)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("source_trial_id: 1", "no checkpoint found for source trial 1"),
        ("source_trial_id: 99", "no checkpoint found for source trial 99"),
        ("source_checkpoint_uuid: nonsense", "invalid source checkpoint UUID"),
        (f"source_checkpoint_uuid: {UUID}", f"no checkpoint found with UUID {UUID}"),
    ],
)
def test_a_warm_start_from_nothing_is_400(open_gateway, line, reason):
    open_gateway.apply(story.created(1), story.trial_created(1))
    assert reason in _refusal(open_gateway, f"{YAML}  {line}\n")


def test_a_refused_storage_is_reported_at_submission(open_gateway, tmp_path):
    blocked = tmp_path / "checkpoints" / "file"
    blocked.parent.mkdir()
    blocked.write_text("no directory")
    storage = f"checkpoint_storage: {{type: shared_fs, host_path: {blocked}, storage_path: deep}}\n"
    message = _refusal(open_gateway, YAML + storage)
    assert str(blocked / "deep") in message
    assert f"user id {os.getuid()}" in message
    missing = tmp_path / "checkpoints" / "missing"
    storage = f"checkpoint_storage: {{type: directory, container_path: {missing}}}\n"
    assert str(missing) in _refusal(open_gateway, YAML + storage)


def test_too_large_a_context_is_413(open_gateway, monkeypatch):
    monkeypatch.setattr(archive, "LIMIT_BYTES", 10)
    message = open_gateway.refused(413, "POST", PATH, {"config": YAML, "modelDefinition": FILES})
    assert ".detignore" in message


def test_what_runs_runs_as_the_account_that_its_owner_is_linked_with(open_gateway):
    open_gateway.log_in("admin")
    linked = {"agentUid": 7, "agentGid": 8, "agentUser": "d", "agentGroup": "g"}
    open_gateway.send("PATCH", "/api/v1/users/2", {"agentUserGroup": linked})
    _submit(open_gateway)
    open_gateway.log_in("determined")
    _submit(open_gateway)
    open_gateway.post("/api/v1/commands", {"config": {"entrypoint": "true", "resources": {"slots": 0}}})
    made = [
        command
        for command in open_gateway.peers.commands
        if isinstance(command, CreateExperiment | SubmitTask)
    ]
    assert [command.agent_user for command in made] == [
        None,
        AgentUser(7, 8, "d", "g"),
        AgentUser(7, 8, "d", "g"),
    ]


def test_a_project_that_is_archived_while_the_code_is_stored_takes_no_experiment(open_gateway, monkeypatch):
    gateway = open_gateway
    project = ProjectSet(project_id=2, workspace_id=1, name="p", owner="determined", reason="test")
    gateway.apply(project)
    store = submit._store_context

    async def slow_store(*arguments):
        await gateway.peers.append(msgspec.structs.replace(project, archived=True))
        while not gateway.backend.catalogue.state.projects[2].archived:
            await asyncio.sleep(0)
        return await store(*arguments)

    monkeypatch.setattr(submit, "_store_context", slow_store)
    assert "is archived" in _refusal(gateway, projectId=2)
    assert gateway.peers.commands == []
