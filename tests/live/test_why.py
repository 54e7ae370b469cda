"""`det why` of each kind on a real cluster: the log says who did what, and what came of it."""

import json

import pytest

from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(900)

CONFIG = """
name: why
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 3}
max_restarts: 0
"""
SCRIPT = """
import time, pathlib
import determined as det
with det.core.init() as core:
    for op in core.searcher.operations():
        with core.checkpoint.store_path({"steps_completed": 1}) as (path, uuid):
            (path / "state").write_text("x")
        while WAITS and not core.preempt.should_preempt():
            time.sleep(0.02)
        if WAITS:
            break
        op.report_completed(0.5)
"""


@pytest.fixture
def submit(cluster, tmp_path):
    """A function that submits a script, which ends by itself or waits to be asked to leave."""

    def create(waits):
        (tmp_path / "train.py").write_text(SCRIPT.replace("WAITS", str(waits)))
        (tmp_path / "config.yaml").write_text(CONFIG)
        return cluster.create("config.yaml", tmp_path)

    return create


def why(cluster, kind, id):
    """State and sentences of a chain, with reasons and actors."""
    answer = json.loads(cluster.det("why", kind, id, "--json").stdout)
    return answer["state"], [(s["what"], s["reason"], s["actor"]) for s in answer["steps"]], answer["steps"]


def sentences(cluster, kind, id):
    state, steps, _ = why(cluster, kind, id)
    return state, [what for what, _, _ in steps]


def test_a_completed_experiment_and_all_of_it(cluster, submit):
    id = submit(False)
    trial = cluster.first_trial(id)
    cluster.wait_for_end(id)
    state, chain = sentences(cluster, "experiment", id)
    assert state == "COMPLETED"
    assert chain[0] == f"experiment {id} completed"
    assert f"the script of trial {trial} reported 0.5 for operation 1" in chain
    assert chain[-1] == f"experiment {id} was created"
    assert sentences(cluster, "job", f"experiment-{id}") == (state, chain)
    about = [step["about"] for step in why(cluster, "trial", trial)[2]]
    allocation = next(subject["id"] for subject in about if subject["kind"] == "allocation")
    assert sentences(cluster, "allocation", allocation)[1][0] == f"run 1 of trial {trial} ended well"
    (checkpoint,) = cluster.get(f"experiments/{id}/checkpoints")["checkpoints"]
    assert any(
        "stored checkpoint" in sentence
        for sentence in sentences(cluster, "checkpoint", checkpoint["uuid"])[1]
    )


def test_paused_and_killed_by_whom(cluster, submit):
    id = submit(True)
    trial = cluster.first_trial(id)
    wait_for(lambda: cluster.get(f"experiments/{id}/checkpoints")["checkpoints"], 60, "a checkpoint")
    newest = lambda: cluster.get(f"why/trial/{trial}")["steps"][0]["what"]  # noqa: E731
    assert newest().startswith(f"run 1 of trial {trial} started on ")
    cluster.det("e", "pause", id)
    wait_for(lambda: newest().startswith(f"run 1 of trial {trial} ended, and"), 60, "the run to leave")
    state, steps, _ = why(cluster, "trial", trial)
    assert state == "PAUSED"
    assert steps[-1][0] == f"experiment {id} was paused"
    assert steps[-1][2] == "user:determined"
    assert any("asked to save and leave" in what for what, _, _ in steps)
    cluster.det("e", "kill", id)
    cluster.wait_for_end(id)
    state, steps, _ = why(cluster, "trial", trial)
    assert state == "CANCELED"
    assert steps[-1][0] == f"experiment {id} was to be canceled"
    assert "kill" in steps[-1][1]
    shown = cluster.det("why", "experiment", id).stdout
    assert shown.startswith(f"Experiment {id}: Canceled\n")
    whole = cluster.det("why", "trial", trial, "--all").stdout
    assert whole.index("was paused") < whole.index("was to be canceled")


def test_what_is_not_there(cluster):
    done = cluster.det("why", "trial", 999_999, check=False)
    assert done.returncode == 1
    assert "trial '999999' not found" in done.stderr
