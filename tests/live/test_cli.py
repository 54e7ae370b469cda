"""`det` as a person types it, against a cluster."""

import json
import re

import pytest

from determined.transport import identity
from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(900)

SCRIPT = """
import determined as det
from determined import core

with core.init() as context:
    lr = det.get_cluster_info().trial.hparams["lr"]
    for operation in context.searcher.operations():
        for step in sorted({*range(2, operation.length + 1, 2), operation.length}):
            print("step", step, flush=True)
            context.train.report_training_metrics(step, {"loss": lr / step})
            context.train.report_validation_metrics(step, {"error": lr / step})
            with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                (path / "weights").write_text(f"{lr} {step}")
        operation.report_completed(lr / operation.length)
"""
CONFIG = """
name: cli
entrypoint: python3 train.py
hyperparameters: {lr: {type: categorical, vals: [1.0, 2.0]}}
searcher: {name: grid, metric: error, max_length: {batches: 4}}
checkpoint_storage: {save_experiment_best: 9, save_trial_best: 9, save_trial_latest: 9}
max_restarts: 0
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    folder = tmp_path_factory.mktemp("code")
    (folder / "train.py").write_text(SCRIPT)
    (folder / "c.yaml").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def finished(shared_cluster, code):
    """An experiment that has ended, of two trials with two checkpoints each."""
    number = shared_cluster.create("c.yaml", code)
    shared_cluster.det("e", "wait", number, "--polling-interval", "0.2")
    return number


def csv_of(done):
    header, *rows = (line.split(",") for line in done.stdout.splitlines())
    return [dict(zip(header, row, strict=False)) for row in rows]


def test_create_and_follow(cluster, code):
    done = cluster.det("experiment", "create", "c.yaml", ".", "--follow", cwd=code)
    number = int(re.search(r"^Created experiment (\d+)$", done.stdout, re.MULTILINE)[1])
    trial = int(re.search(r"^Following first trial with ID (\d+)$", done.stdout, re.MULTILINE)[1])
    assert "step 4" in done.stdout
    assert done.stdout.endswith(f"To reopen log stream, run: det trial logs -f {trial}\n")
    # The second trial may still be on its way.
    assert cluster.experiment(number)["state"] not in ("STATE_ERROR", "STATE_CANCELED", "STATE_PAUSED")


def test_downloads(cluster, finished, tmp_path):
    rows = csv_of(cluster.det("e", "list-checkpoints", finished, "--best", "1", "--csv"))
    best = rows[0]["UUID"]
    for mode in ("direct", "master", "auto"):
        target = tmp_path / mode
        done = cluster.det("checkpoint", "download", best, "-o", target, "--mode", mode, "-q")
        assert done.stdout == f"{target}\n"
        assert (target / "weights").read_text() == "1.0 4"
        assert json.loads((target / "metadata.json").read_text()) == {"steps_completed": 4}
    done = cluster.det("e", "download", finished, "--top-n", "2", "-o", tmp_path / "top", "-q")
    assert done.stdout.splitlines()[0] == str(tmp_path / "top" / best)
    assert len(done.stdout.splitlines()) == 2
    trial = cluster.trials(finished)[1]
    cluster.det("t", "download", trial["id"], "--latest", "-o", tmp_path / "latest")
    assert (tmp_path / "latest" / "weights").read_text() == f"{trial['hparams']['lr']} 4"


def test_checkpoints_go(cluster, code):
    number = cluster.create("c.yaml", code)
    cluster.det("e", "wait", number, "--polling-interval", "0.2")
    by_error = sorted(
        cluster.get(f"experiments/{number}/checkpoints")["checkpoints"],
        key=lambda checkpoint: checkpoint["training"]["searcherMetric"],
        reverse=True,
    )
    first, second = (checkpoint["uuid"] for checkpoint in by_error[:2])
    cluster.det("c", "delete", first, "--yes")
    cluster.det("c", "rm", second, "--glob", "weights", "--yes")

    def states():
        checkpoints = cluster.get(f"experiments/{number}/checkpoints")["checkpoints"]
        return {checkpoint["uuid"]: checkpoint["state"] for checkpoint in checkpoints}

    wait_for(lambda: states()[first] == "STATE_DELETED", 60, "the checkpoint to be deleted")
    wait_for(lambda: states()[second] == "STATE_PARTIALLY_DELETED", 60, "the file to be removed")
    refused = cluster.det("c", "download", first, check=False)
    assert refused.returncode == 1
    assert "Failed to download a checkpoint" in refused.stderr
    policy = ["--save-experiment-best", "1", "--save-trial-best", "0", "--save-trial-latest", "0", "--yes"]
    shown = cluster.det("e", "set", "gc-policy", number, *policy).stdout
    assert "Checkpoints that this policy deletes" in shown
    wait_for(lambda: list(states().values()).count("STATE_COMPLETED") == 1, 60, "retention to be applied")


def test_test_mode(cluster, code):
    done = cluster.det("e", "create", "c.yaml", ".", "--test", cwd=code)
    assert "Validating experiment configuration... succeeded! 🎉" in done.stdout
    assert done.stdout.endswith("Model definition test succeeded! 🎉\n")
    failing = cluster.det(
        "e", "create", "c.yaml", ".", "-t", "--config", "entrypoint=exit 3", cwd=code, check=False
    )
    assert failing.returncode == 1
    refused = cluster.det(
        "e", "create", "c.yaml", ".", "-t", "--config", "searcher.name=x", cwd=code, check=False
    )
    assert (refused.returncode, "searcher" in refused.stderr) == (1, True)


def test_tasks(cluster, code):
    number = cluster.create("c.yaml", code, "--config", "entrypoint=echo begun; sleep 600")
    wait_for(lambda: csv_of(cluster.det("task", "list", "--csv")), 60, "a task")
    wait_for(lambda: cluster.trials(number), 60, "a trial")
    trial = cluster.trials(number)[0]["id"]
    wait_for(lambda: any("begun" in line for line in cluster.logs(trial)), 60, "its log")
    task = cluster.get(f"trials/{trial}")["trial"]["taskIds"][0]
    assert "begun" in cluster.det("task", "logs", task).stdout
    cluster.det("e", "kill", number)


def test_commands(cluster, tmp_path):
    (tmp_path / "told.txt").write_text("told by a file")
    done = cluster.det("cmd", "run", "-c", tmp_path, "cat", "told.txt")
    assert "told by a file" in done.stdout
    id = cluster.det("cmd", "run", "-d", "sleep", "600").stdout.strip()
    wait_for(lambda: id in cluster.det("cmd", "list", "-q").stdout.split(), 60, "the command")
    assert "Killed command" in cluster.det("cmd", "kill", id[:12]).stdout
    assert cluster.det("cmd", "config", id).stdout.startswith("entrypoint:\n- sleep\n")


def test_the_master(cluster, finished):
    assert json.loads(cluster.det("master", "info", "--json").stdout)["version"] == "0.25.0"
    everything = cluster.det("master", "logs").stdout.splitlines()
    assert any(f"experiment {finished} was created" in line for line in everything)
    assert cluster.det("master", "logs", "--tail", "2").stdout.splitlines()
    assert "Forbidden(" in cluster.det("master", "config", check=False).stderr


def test_the_registry(cluster, finished):
    uuid = csv_of(cluster.det("e", "lc", finished, "--csv"))[0]["UUID"]
    cluster.det("w", "create", "sight")
    cluster.det("m", "create", "numerals")
    cluster.det("m", "register-version", "numerals", uuid)
    cluster.det("m", "move", "numerals", "sight")
    output = json.loads(cluster.det("m", "describe", "numerals", "--json").stdout)
    assert output["model"]["numVersions"] == 1
    assert output["modelVersions"][0]["checkpoint"]["uuid"] == uuid
    refused = cluster.det("c", "delete", uuid, "--yes", check=False)
    assert (refused.returncode, "numerals" in refused.stderr) == (1, True)


def test_places(cluster, code):
    cluster.det("w", "create", "laboratory")
    cluster.det("p", "create", "laboratory", "first", "--description", "of many")
    (project,) = json.loads(cluster.det("p", "list", "laboratory", "--json").stdout)
    number = cluster.create("c.yaml", code, "--paused", "--project", project["id"])
    shown = csv_of(cluster.det("e", "list", "--show", "--csv"))
    assert next(row for row in shown if row["ID"] == str(number))["Project"] == "first"
    cluster.det("e", "kill", number)


def test_users(cluster):
    admin = cluster.api("POST", "auth/login", json={"username": "admin", "password": "", "isHashed": True})
    body = {"user": {"username": "clara", "active": True}, "password": identity.hashed("p"), "isHashed": True}
    headers = {"Authorization": f"Bearer {admin['token']}"}
    cluster._session.post(f"{cluster.address}/api/v1/users", json=body, headers=headers, timeout=60)
    assert "clara" in cluster.det("u", "list").stdout
    refused = cluster.det("u", "deactivate", "clara", check=False)
    assert (refused.returncode, "Forbidden(" in refused.stderr) == (1, True)


def test_what_is_there_and_what_is_not(cluster):
    assert cluster.det("help").returncode == 0
    assert cluster.det("e", "frobnicate", check=False).returncode == 2
    gone = cluster.det("auth", "login", check=False)
    assert (gone.returncode, "not supported" in gone.stderr) == (1, True)
    trace = cluster.det("--debug", "e", "describe", 999_999, check=False)
    assert (trace.returncode, "Traceback" in trace.stderr) == (1, True)
    plain = cluster.det("e", "describe", 999_999, check=False)
    assert (plain.returncode, len(plain.stderr.splitlines())) == (1, 1)
