"""The main job through a real local cluster: scripts in, trials, metrics, checkpoints and logs out."""

import re

import pytest

from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(900)

SCRIPT = """
import determined as det

def main(core, info):
    x, start = 0, 0
    if info.latest_checkpoint:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            x, start, trial = map(int, (path / "state").read_text().split(","))
            start = start if trial == info.trial.trial_id else 0
    print(f"starts at {start} with {x}", flush=True)
    step = start
    for op in core.searcher.operations():
        while step < op.length:
            step += 1
            x += info.trial.hparams["by"]
            PAUSE
            core.train.report_training_metrics(steps_completed=step, metrics={"x": x})
            if step % 5 == 0:
                with core.checkpoint.store_path({"steps_completed": step}) as (path, uuid):
                    (path / "state").write_text(f"{x},{step},{info.trial.trial_id}")
                if core.preempt.should_preempt():
                    print(f"leaves at {step}", flush=True)
                    return
        core.train.report_validation_metrics(steps_completed=step, metrics={"x": x})
        op.report_completed(x)

info = det.get_cluster_info()
with det.core.init() as core:
    main(core, info)
"""


@pytest.fixture
def model(tmp_path):
    """A function that writes a model directory with a script and a configuration."""

    def write(config, script=SCRIPT, pause="pass", **files):
        folder = tmp_path / "model"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(script.replace("PAUSE", pause))
        (folder / "config.yaml").write_text(config)
        for name, text in files.items():
            (folder / name.replace("__", ".")).write_text(text)
        return folder

    return write


SINGLE = """
name: single
entrypoint: python3 train.py
searcher: {name: single, metric: x, max_length: 20}
hyperparameters: {by: 2}
max_restarts: 0
"""


def test_a_script_runs_and_leaves_metrics_checkpoints_and_logs(cluster, model):
    id = cluster.create("config.yaml", model(SINGLE))
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    (trial,) = cluster.trials(id)
    assert trial["state"] == "STATE_COMPLETED"
    assert trial["bestValidation"]["metrics"]["avgMetrics"] == {"x": 40}
    assert trial["totalBatchesProcessed"] == 20
    rows = cluster.stream("trials/metrics/training_metrics", trialIds=trial["id"])
    metrics = [m for row in rows for m in row["metrics"]]
    points = [(m["totalBatches"], m["metrics"]["avgMetrics"]["x"]) for m in metrics]
    assert points == [(n, 2 * n) for n in range(1, 21)]
    assert "starts at 0 with 0" in cluster.logs(trial["id"])
    completed = [
        checkpoint
        for checkpoint in cluster.get(f"experiments/{id}/checkpoints")["checkpoints"]
        if checkpoint["state"] == "STATE_COMPLETED"
    ]
    assert completed


@pytest.mark.full
def test_following_a_search_to_its_end(cluster, model):
    config = SINGLE.replace("by: 2", "by: {type: int, minval: 1, maxval: 8}").replace(
        "{name: single, metric: x, max_length: 20}",
        "{name: adaptive_asha, metric: x, max_length: 16, max_trials: 4, smaller_is_better: false}",
    )
    done = cluster.det("e", "create", "config.yaml", ".", "-f", cwd=model(config))
    id = int(re.search(r"Created experiment (\d+)\n", done.stdout)[1])
    assert "Trial log stream ended" in done.stdout + done.stderr
    assert cluster.det("e", "wait", id).returncode == 0
    trials = cluster.trials(id)
    assert len(trials) == 4
    assert {t["state"] for t in trials} == {"STATE_COMPLETED"}


def test_pausing_and_activating_resumes_at_the_last_checkpoint(cluster, model):
    # The first run waits at step 10 until it is asked to leave.
    waits = "step == 10 and info.trial._trial_run_id == 1 and not core.preempt.should_preempt()"
    id = cluster.create("config.yaml", model(SINGLE, pause=f"while {waits}: __import__('time').sleep(0.02)"))
    trial = cluster.first_trial(id)

    def lines_with(words):
        return [line for line in cluster.logs(trial) if words in line]

    wait_for(lambda: lines_with("starts at"), 60, "the start")
    wait_for(lambda: cluster.get(f"experiments/{id}/checkpoints")["checkpoints"], 60, "a checkpoint")
    cluster.tell(id, "pause")
    wait_for(lambda: lines_with("leaves at"), 60, "the script to leave")
    left = lines_with("leaves at")[0].rpartition(" ")[2]
    assert cluster.experiment(id)["state"] == "STATE_PAUSED"
    cluster.tell(id, "activate")
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    assert lines_with(f"starts at {left} with {2 * int(left)}")
    (trial,) = cluster.trials(id)
    assert trial["bestValidation"]["metrics"]["avgMetrics"] == {"x": 40}
    assert trial["restarts"] == 0


@pytest.mark.full
def test_continuing_takes_the_weights_and_starts_over(cluster, model):
    folder = model(SINGLE)
    first = cluster.create("config.yaml", folder)
    cluster.wait_for_end(first)
    source = f"searcher.source_trial_id={cluster.first_trial(first)}"
    again = cluster.create("config.yaml", folder, "--config", source)
    assert cluster.wait_for_end(again)["state"] == "STATE_COMPLETED"
    assert "starts at 0 with 40" in cluster.logs(cluster.first_trial(again))


def test_a_failing_trial_restarts_from_its_checkpoint(cluster, model):
    crash = "if step == 12 and info.trial._trial_run_id < 3: import os; os._exit(3)"
    folder = model(SINGLE.replace("max_restarts: 0", "max_restarts: 2"), pause=crash)
    id = cluster.create("config.yaml", folder)
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    (trial,) = cluster.trials(id)
    assert trial["restarts"] == 2
    assert cluster.logs(trial["id"]).count("starts at 10 with 20") == 2


def test_a_missing_entrypoint_says_so(cluster, model):
    id = cluster.create("config.yaml", model(SINGLE.replace("python3 train.py", "[no-such-program, x]")))
    ended = cluster.wait_for_end(id)
    assert ended["state"] == "STATE_ERROR"
    assert any("no-such-program" in line for line in cluster.logs(cluster.first_trial(id)))
    assert "no-such-program" in cluster.det("e", "describe", id).stdout
    assert cluster.det("e", "wait", id, check=False).returncode == 1


def test_a_bad_configuration_lists_every_error(cluster, model):
    config = SINGLE.replace("max_restarts: 0", "max_restarts: -1").replace("max_length: 20", "max_length: {}")
    done = cluster.det("e", "create", "config.yaml", ".", cwd=model(config), check=False)
    assert done.returncode == 1
    assert "<config>.max_restarts" in done.stderr
    assert "<config>.searcher.max_length" in done.stderr


def test_scripts_beside_files_named_like_the_platform(cluster, model):
    script = "import worker, services\nprint(worker.MINE, services.MINE)\n"
    folder = model(
        SINGLE, script=script, worker__py="MINE = 'my worker'", services__py="MINE = 'my services'"
    )
    id = cluster.create("config.yaml", folder)
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    assert "my worker my services" in cluster.logs(cluster.first_trial(id))
