"""`det experiment create --test-mode`, on the cluster and here."""

from __future__ import annotations

import pytest

from determined import yamlfile
from determined.cli import experiment_test_mode
from tests.sdk.fake_gateway import Lines, Status

ONE = "/api/v1/experiments/7"
CONFIG = """
description: mine
entrypoint: model_def:Tiny
hyperparameters: {lr: {type: double, minval: 0.1, maxval: 0.2}, global_batch_size: 2}
resources: {slots_per_trial: 2}
checkpoint_storage: {save_trial_best: 3}
searcher: {name: random, metric: validation_loss, smaller_is_better: false, max_trials: 9,
  max_length: {batches: 99}}
"""
MODEL = """
import torch
from torch import nn
from determined import pytorch

class Tiny(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(nn.Linear(1, 1))
        optimizer = torch.optim.SGD(self.model.parameters(), context.get_hparam("lr"))
        self.optimizer = context.wrap_optimizer(optimizer)
    def _loss(self, batch):
        return self.model(batch).pow(2).mean()
    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = self._loss(batch)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}
    def evaluate_batch(self, batch):
        return {"validation_loss": self._loss(batch)}
    def build_training_data_loader(self):
        return pytorch.DataLoader(torch.ones(8, 1), self.context.get_per_slot_batch_size())
    build_validation_data_loader = build_training_data_loader

class Leaves(Tiny):
    def __init__(self, context):
        raise SystemExit(0)
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "c.yaml").write_text(CONFIG)
    (folder / "model_def.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def cluster(master, monkeypatch):
    monkeypatch.setattr(experiment_test_mode, "_POLL_S", 0)
    master.answer("POST", "/api/v1/experiments", {"experiment": {"id": 0}}, {"experiment": {"id": 7}})
    master.answer("GET", f"{ONE}/trials", {"trials": []}, {"trials": [{"id": 3}]})

    def becomes(end, *runner_states, reported=("avg_metrics", "validation_metrics"), checkpoints=1):
        running = {"experiment": {"id": 7, "state": "STATE_RUNNING"}}
        ended = {"experiment": {"id": 7, "state": end, "stateReason": "exit code 1"}}
        master.answer("GET", ONE, *[running] * (len(runner_states) + 1), ended)
        groups = {name: {"loss": {}} for name in reported}
        shown = [{"trial": {"id": 3, "runnerState": state}} for state in runner_states]
        shown.append({"trial": {"id": 3, "runnerState": runner_states[-1], "summaryMetrics": groups}})
        listed = [{"uuid": "u", "state": "STATE_DELETED"}] * checkpoints
        master.answer("GET", "/api/v1/trials/3/checkpoints", {"checkpoints": listed})
        master.answer("GET", "/api/v1/trials/3", *shown)

    return becomes


def test_on_the_cluster(master, cluster, det, code):
    cluster("STATE_COMPLETED", "", "training", "validating", "checkpointing")
    done = det("e", "create", code / "c.yaml", code, "--test")
    assert done.status == 0
    assert done.out.splitlines()[1:] == [
        "Validating experiment configuration... succeeded! 🎉",
        "Created test experiment 7",
        "Scheduling task...",
        "Testing training...",
        "Testing validation...",
        "Testing checkpointing...",
        "Model definition test succeeded! 🎉",
    ]
    checked, created = (call.json for call in master.calls_to("POST", "/api/v1/experiments"))
    assert (checked["validateOnly"], checked["config"]) == (True, CONFIG)
    assert created["activate"] is True
    assert "validateOnly" not in created
    config = yamlfile.parse(created["config"])
    assert 0.1 <= config.pop("hyperparameters")["lr"] <= 0.2
    assert config == {
        "description": "[test-mode] mine",
        "entrypoint": "model_def:Tiny",
        "scheduling_unit": 1,
        "min_validation_period": {"batches": 1},
        "checkpoint_storage": {"save_experiment_best": 0, "save_trial_best": 0, "save_trial_latest": 0},
        "searcher": {
            "name": "single",
            "metric": "validation_loss",
            "smaller_is_better": False,
            "max_length": {"batches": 1},
        },
        "resources": {"slots_per_trial": 2},
        "max_restarts": 0,
    }


@pytest.mark.parametrize(
    ("reported", "checkpoints", "tested", "expected"),
    [
        (
            (),
            0,
            [],
            "Not tested: training, validation, checkpointing. The script reported no training metrics, "
            "reported no validation metrics and stored no checkpoint.",
        ),
        (
            ("avg_metrics", "validation_metrics"),
            0,
            ["Testing training...", "Testing validation..."],
            "Not tested: checkpointing. The script stored no checkpoint.",
        ),
    ],
)
def test_only_what_was_seen_is_said_to_work(cluster, det, code, reported, checkpoints, tested, expected):
    cluster("STATE_COMPLETED", "", reported=reported, checkpoints=checkpoints)
    done = det("e", "create", code / "c.yaml", code, "--test")
    assert done.status == 0
    shown = done.out.splitlines()[3:]
    assert shown == ["Scheduling task...", *tested, "The script ran to completion."]
    assert done.err.strip() == expected


def test_a_failure_shows_the_log(master, cluster, det, code):
    cluster("STATE_ERROR", "training")
    line = {"id": 1, "timestamp": "2026-01-01T00:00:00Z", "message": "boom\n"}
    master.answer("GET", "/api/v1/trials/3/logs", Lines([{"result": line}]))
    done = det("e", "create", code / "c.yaml", code, "-t")
    assert done.status == 1
    assert done.out.splitlines()[-1] == "boom"
    assert "ERROR: exit code 1" in done.err


def test_a_canceled_one(master, cluster, det, code):
    cluster("STATE_CANCELED", "training")
    done = det("e", "create", code / "c.yaml", code, "-t")
    assert (done.status, "canceled" in done.err) == (1, True)


def test_a_configuration_that_the_master_refuses(master, cluster, det, code):
    master.answer("POST", "/api/v1/experiments", Status(400, {"error": {"error": "no entrypoint"}}))
    done = det("e", "create", code / "c.yaml", code, "-t")
    assert (done.status, "no entrypoint" in done.err) == (1, True)
    assert len(master.calls_to("POST", "/api/v1/experiments")) == 1


def test_options_that_exclude_each_other(det, code):
    for other in ("-f", "--paused"):
        assert det("e", "create", code / "c.yaml", code, "-t", other).status == 2
    done = det("e", "create", code / "c.yaml", code, "--local")
    assert (done.status, "--test-mode" in done.err) == (1, True)


def test_here_without_a_master(det, code, client_home):
    pytest.importorskip("torch")
    done = det("-m", "127.0.0.1:1", "e", "create", code / "c.yaml", code, "--local", "--test")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "The test experiment passed."


def test_here_scripts_are_run_directly(det, code):
    done = det(
        "e", "create", code / "c.yaml", code, "--local", "--test", "--config", "entrypoint=python3 x.py"
    )
    assert (done.status, "directly" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("entrypoint", "expected"),
    [("model_def:Leaves", "sys.exit(0)"), ("model_def:None_", "None_"), ("nothing:Here", "nothing")],
)
def test_here_what_goes_wrong(det, code, entrypoint, expected):
    pytest.importorskip("torch")
    words = ("--local", "--test", "--config", f"entrypoint={entrypoint}")
    done = det("e", "create", code / "c.yaml", code, *words)
    assert (done.status, expected in done.err) == (1, True)
