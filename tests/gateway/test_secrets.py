"""Secrets of configurations: what the log holds, what answers show, and what a mask means that comes back."""

from __future__ import annotations

import copy

import msgspec
import pytest
import yaml

from det_contracts import expconf
from det_contracts.commands import CreateExperiment, SubmitTask
from det_contracts.events import gateway as events
from services.kit import yamlfile
from services.kit.sealing import open_secrets
from services.submission.masked_text import masked_text
from tests.gateway import stories
from tests.gateway.harness import SEALER

PATH = "/api/v1/experiments"
SECRETS = ("AKIA-1", "s3-secret", "registry-pw", "hf-secret")
TEXT = """
name: n
entrypoint: python3 train.py
hyperparameters: {{lr: 0.1}}
searcher: {{name: single, metric: loss, max_length: 100}}
checkpoint_storage:
  type: s3
  bucket: b
  endpoint_url: {endpoint}
  access_key: AKIA-1
  secret_key: s3-secret   # never: s3-secret
environment:
  registry_auth: {{username: u, password: registry-pw}}
  environment_variables: [A=1, HF_TOKEN=hf-secret]
"""


@pytest.fixture
def gateway(open_gateway, monkeypatch):
    monkeypatch.setattr("services.submission.submit.probe", lambda *_: None)
    return open_gateway


def text(endpoint="http://s3.example"):
    return TEXT.format(endpoint=endpoint)


def submit(gateway, config, **body):
    return gateway.post(PATH, {"config": config, "modelDefinition": [], **body})


def clear(command):
    return open_secrets(command.config, command.user, SEALER)


def log_and_commands(gateway):
    return b"".join(m.body for m in gateway._stream()) + msgspec.json.encode(gateway.peers.commands)


def test_neither_log_nor_answers_hold_a_secret(gateway):
    checked = gateway.post(PATH, {"config": text(), "modelDefinition": [], "validateOnly": True})
    answers = [checked, submit(gateway, text()), gateway.get(f"{PATH}/1"), gateway.get(PATH)]
    answers += [gateway.get("/api/v1/events"), gateway.get("/api/v1/events/1")]
    for secret in SECRETS:
        assert secret.encode() not in log_and_commands(gateway)
        assert secret not in str(answers)
    assert "sealed:" not in str(answers)
    assert answers[2]["experiment"]["config"]["environment"]["environment_variables"]["cpu"] == [
        "A=1",
        "HF_TOKEN=********",
    ]
    (command,) = gateway.peers.commands
    config = clear(command)
    assert config["checkpoint_storage"]["secret_key"] == "s3-secret"
    assert config["environment"]["environment_variables"]["cuda"] == ["A=1", "HF_TOKEN=hf-secret"]


def test_what_was_read_back_and_sent_again_means_what_it_meant(gateway):
    submit(gateway, text())
    shown = gateway.get(f"{PATH}/1")["experiment"]
    for config in (yaml.safe_dump(shown["config"]), shown["originalConfig"]):
        submit(gateway, config, parentId=1)
    first, *forks = gateway.peers.commands
    assert [fork.parent_id for fork in forks] == [1, 1]
    for fork in forks:
        assert {k: v for k, v in clear(fork).items() if k in ("checkpoint_storage", "environment")} == {
            k: v for k, v in clear(first).items() if k in ("checkpoint_storage", "environment")
        }
    for secret in SECRETS:
        assert secret.encode() not in log_and_commands(gateway)


def test_a_secret_that_was_changed_is_the_new_one(gateway):
    submit(gateway, text())
    config = gateway.get(f"{PATH}/1")["experiment"]["config"]
    config["environment"]["environment_variables"] = ["HF_TOKEN=another"]
    submit(gateway, yaml.safe_dump(config), parentId=1)
    assert clear(gateway.peers.commands[1])["environment"]["environment_variables"]["cpu"] == [
        "HF_TOKEN=another"
    ]


def test_a_fork_of_anothers_experiment_has_none_of_its_secrets(gateway):
    submit(gateway, text())
    config = gateway.get(f"{PATH}/1")["experiment"]["config"]
    gateway.log_in("admin")
    body = {"config": yaml.safe_dump(config), "modelDefinition": [], "parentId": 1}
    message = gateway.refused(400, "POST", PATH, body)
    assert "checkpoint_storage.access_key is masked" in message
    assert "it is determined's, and is not passed on" in message


def test_keys_of_the_clusters_storage_are_for_everybody_and_for_no_other_address(gateway):
    own = {
        "type": "s3",
        "bucket": "b",
        "endpoint_url": "http://s3.example",
        "access_key": "a",
        "secret_key": "c",
    }
    object.__setattr__(gateway.backend, "storage", own)
    plain = {"entrypoint": "x", "searcher": {"name": "single", "metric": "l", "max_length": 1}}
    submit(gateway, yaml.safe_dump(plain))
    config = gateway.get(f"{PATH}/1")["experiment"]["config"]
    assert config["checkpoint_storage"]["secret_key"] == "********"
    gateway.let_in("admin")
    submit(gateway, yaml.safe_dump(config), parentId=1)
    assert clear(gateway.peers.commands[1])["checkpoint_storage"]["secret_key"] == "c"
    for change in ({"endpoint_url": "http://evil.example"}, {"bucket": "other"}):
        other = copy.deepcopy(config)
        other["checkpoint_storage"] |= change
        body = {"config": yaml.safe_dump(other), "modelDefinition": [], "parentId": 1}
        assert "is masked" in gateway.refused(400, "POST", PATH, body)


def board_of(gateway, **body):
    return gateway.post("/api/v1/tensorboards", {"config": {}} | body)["tensorboard"]["id"]


def keys_of(gateway, id):
    """The storage keys that the worker gives to a TensorBoard, whose user can read all that it has."""
    (submission,) = [command for command in gateway.peers.commands if getattr(command, "task_id", "") == id]
    return [source["storage"].get("secret_key") for source in clear(submission)["tensorboard"]["sources"]]


def test_a_tensorboard_of_anothers_experiment_gets_none_of_its_keys(gateway):
    submit(gateway, text())
    gateway.apply(stories.trial_created(1, experiment_id=1))
    assert keys_of(gateway, board_of(gateway, experimentIds=[1])) == ["s3-secret"]
    gateway.log_in("admin")
    for body in ({"experimentIds": [1]}, {"trialIds": [1]}):
        message = gateway.refused(400, "POST", "/api/v1/tensorboards", {"config": {}, **body})
        assert "experiment 1" in message
        assert "ask determined to start the TensorBoard" in message
        assert "s3-secret" not in message


def test_a_tensorboard_of_anothers_experiment_in_shared_storage_gets_the_shared_keys(gateway):
    """Also after they were changed: those of the experiment are the former ones."""
    submit(gateway, text())
    own = yaml.safe_load(text())["checkpoint_storage"]
    gateway.log_in("admin")
    object.__setattr__(gateway.backend, "storage", own | {"secret_key": "changed"})
    assert keys_of(gateway, board_of(gateway, experimentIds=[1])) == ["changed"]
    object.__setattr__(gateway.backend, "storage", own | {"bucket": "other"})
    gateway.refused(400, "POST", "/api/v1/tensorboards", {"config": {}, "experimentIds": [1]})


def test_keys_of_a_workspace_are_for_those_who_may_start_tasks_in_it(gateway):
    own = yaml.safe_load(text())["checkpoint_storage"]
    gateway.log_in("admin")
    gateway.post("/api/v1/workspaces", {"name": "Vision", "checkpointStorageConfig": own})
    gateway.post("/api/v1/workspaces/2/projects", {"name": "Digits"})
    submit(gateway, text())
    gateway.apply(events.ExperimentMoved(1, 2, "tried"))
    gateway.apply(events.UserSet(user_id=8, username="vera", reason="made"), events.AuthzSet("rbac", "tried"))
    body = {"config": {}, "workspaceId": 1, "experimentIds": [1]}
    for role, gets in (("Viewer", False), ("Editor", True)):
        grants = (events.Grant("Editor", 1), events.Grant(role, 2))
        gateway.apply(events.RolesSet("user-8", grants, "tried"))
        gateway.log_in("vera")
        if gets:
            assert keys_of(gateway, board_of(gateway, **body)) == ["s3-secret"]
        else:
            assert "ask admin to start the TensorBoard" in gateway.refused(
                400, "POST", "/api/v1/tensorboards", body
            )


def test_masks_and_sealed_texts_out_of_nowhere_are_refused(gateway):
    submit(gateway, text())
    taken = gateway.peers.commands[0].config["checkpoint_storage"]["secret_key"]
    for secret, message in (
        ("'********'", "give the secret itself"),
        (taken, "a sealed secret is not accepted"),
    ):
        config = text().replace("s3-secret   # never: s3-secret", secret)
        body = {"config": config, "modelDefinition": []}
        assert message.lower() in gateway.refused(400, "POST", PATH, body).lower()
    task = {"config": {"entrypoint": "x", "environment": {"environment_variables": [f"A_KEY={taken}"]}}}
    assert "a sealed secret is not accepted" in gateway.refused(400, "POST", "/api/v1/commands", task)


def test_templates_keep_secrets_for_whoever_uses_them(gateway):
    config = {"environment": {"environment_variables": ["HF_TOKEN=hf-secret"]}}
    gateway.post(
        "/api/v1/templates", {"template": {"name": "t", "config": config}, "name": "t", "config": config}
    )
    shown = gateway.get("/api/v1/templates/t")["template"]["config"]
    assert "hf-secret" not in str(shown)
    assert "sealed:" not in str(shown)
    # Read, described otherwise and sent again.
    gateway.send("PUT", "/api/v1/templates/t", {"name": "t", "config": shown | {"description": "d"}})
    gateway.log_in("admin")
    plain = {"entrypoint": "x", "searcher": {"name": "single", "metric": "l", "max_length": 1}}
    submit(gateway, yaml.safe_dump(plain), template="t")
    gateway.post("/api/v1/commands", {"config": {"entrypoint": "x"}, "templateName": "t"})
    made = [
        command for command in gateway.peers.commands if isinstance(command, CreateExperiment | SubmitTask)
    ]
    assert [command.user for command in made] == ["admin", "admin"]
    for command in made:
        assert "HF_TOKEN=hf-secret" in str(clear(command)["environment"])
    assert b"hf-secret" not in log_and_commands(gateway)


def test_secrets_of_a_template_are_for_those_who_may_start_tasks_where_it_is(gateway):
    gateway.log_in("admin")
    gateway.post("/api/v1/workspaces", {"name": "Vision"})
    for name, variable in (("secret", "HF_TOKEN"), ("plain", "MODE")):
        config = {"environment": {"environment_variables": [f"{variable}=hf-secret"]}}
        gateway.post("/api/v1/templates", {"name": name, "config": config, "workspaceId": 2})
    gateway.apply(events.UserSet(user_id=8, username="vera", reason="made"), events.AuthzSet("rbac", "tried"))
    plain = yaml.safe_dump(
        {"entrypoint": "x", "searcher": {"name": "single", "metric": "l", "max_length": 1}}
    )

    def uses(template):
        """The answers for a command and for an experiment."""
        task = {"config": {"entrypoint": ["x"]}, "workspaceId": 1, "templateName": template}
        whole = {"config": plain, "modelDefinition": [], "template": template, "projectId": 1}
        sent = (("/api/v1/commands", task), (PATH, whole))
        return [gateway.send("POST", path, body).status_code for path, body in sent]

    for role, status in (("Viewer", 403), ("Editor", 200)):
        gateway.apply(events.RolesSet("user-8", (events.Grant("Editor", 1), events.Grant(role, 2)), "tried"))
        gateway.log_in("vera")
        assert (uses("secret"), uses("plain")) == ([status] * 2, [200] * 2)


def test_an_old_log_with_secrets_in_the_clear(gateway):
    event = stories.created(1)
    config = copy.deepcopy(event.config)
    config["checkpoint_storage"] = {
        "type": "s3",
        "bucket": "b",
        "access_key": "AKIA-1",
        "secret_key": "s3-secret",
    }
    config["environment"] = {"environment_variables": {"cpu": ["HF_TOKEN=hf-secret"]}}
    gateway.apply(
        msgspec.structs.replace(event, config=config, original_config="x: hf-secret s3-secret AKIA-1")
    )
    shown = [gateway.get(f"{PATH}/1"), gateway.get("/api/v1/events/1")]
    assert not [secret for secret in SECRETS if secret in str(shown)]


WRITTEN = [
    "environment: {environment_variables: [A_KEY=b]}\nname: b\n",
    "environment:\n  environment_variables:\n    cpu:\n    - 'A_KEY=it''s'\n    - B=2\n",
    'environment:\n  environment_variables: ["A_TOKEN=\\x41\\u00fc b"]\nname: "üü 😀"\n',
    "checkpoint_storage:\n  type: azure\n  container: c\n  credential: |\n    ab\n    cd\nname: x\n",
    "checkpoint_storage: {type: s3, bucket: b, secret_key: &k a, access_key: *k}\nname: *k\n",
    "base: &b {secret_key: a, type: s3, bucket: a}\ncheckpoint_storage:\n  <<: *b\n  access_key: !!str 12\n",
    "environment: {environment_variables: [A_KEY=x*, C_SECRET=x=y-long]}\n# x=y-long\n",
]


@pytest.mark.parametrize("written", WRITTEN)
def test_a_masked_text_means_the_masked_configuration(written):
    meant = yamlfile.parse(written)
    shown = masked_text(written, meant)
    masked_config = yamlfile.parse(shown)
    assert expconf.mask_secrets(masked_config) == masked_config
    secrets = {str(secret) for secret in expconf.secrets_of(meant).values()}
    # What is an alias of a secret, or its anchor's map, is hidden as well.
    linked = {"base"} | ({"name"} if "&k" in written else set())
    expected = expconf.mask_secrets(meant)
    assert {k: v for k, v in masked_config.items() if k not in linked} == {
        k: v for k, v in expected.items() if k not in linked
    }
    assert not [secret for secret in secrets if len(secret) > 5 and secret in shown]
