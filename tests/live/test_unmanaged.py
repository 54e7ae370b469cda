"""Scripts outside of the cluster that report to it, with nothing but HTTP and with the published SDK."""

import os
import signal
import subprocess
import sys

import pytest

from tests.fixtures.local_cluster import wait_for

pytestmark = [pytest.mark.live, pytest.mark.timeout(900), pytest.mark.xdist_group("published")]

PLAIN = """
import json, os, sys, urllib.request

def call(method, path, body=None, token=""):
    request = urllib.request.Request(os.environ["DET_MASTER"] + path, method=method)
    request.add_header("Authorization", f"Bearer {token}")
    data = json.dumps(body).encode() if body is not None else None
    with urllib.request.urlopen(request, data, timeout=60) as answer:
        return json.load(answer)

token = call("POST", "/api/v1/auth/login", {"username": "determined", "password": ""})["token"]
api = lambda method, path, body=None: call(method, "/api/v1/" + path, body, token)
config = "name: by hand\\nsearcher: {name: single, metric: loss, max_length: 4}\\n"
wish = {"config": config, "unmanaged": True}
experiment = api("PUT", "experiments/by-external-id/by-hand", wish)["experiment"]
trial = {"experimentId": experiment["id"], "hparams": {"lr": 0.5}}
trial = api("PUT", "trials", {"externalTrialId": "one", "createTrialRequest": trial})["trial"]
run = api("POST", f"trials/{trial['id']}/start", {"resume": True})
for step in range(run["stepsCompleted"] + 1, 5):
    metrics = {"trialId": trial["id"], "trialRunId": run["trialRunId"], "stepsCompleted": step}
    metrics["metrics"] = {"avgMetrics": {"loss": 1 / step}}
    api("POST", f"trials/{trial['id']}/metrics", {"group": "validation", "metrics": metrics})
    stored = {"taskId": trial["taskId"], "uuid": f"by-hand-{step}", "resources": {"x": 1}}
    api("POST", "checkpoints", stored | {"metadata": {"steps_completed": step}})
    line = {"task_id": trial["taskId"], "log": f"step {step} of run {run['trialRunId']}"}
    call("POST", "/task-logs", [line], token)
    if step == 2 and run["trialRunId"] == 1:
        api("PATCH", f"trials/{trial['id']}", {"state": "STATE_ERROR"})
        sys.exit(3)
api("PATCH", f"trials/{trial['id']}", {"state": "STATE_COMPLETED"})
"""

PUBLISHED = """
import os, signal, sys
from determined.experimental import core_v2

core_v2.init(
    defaults=core_v2.DefaultConfig(
        name="with their SDK",
        hparams={"lr": 0.1},
        labels=["outside"],
        searcher={"name": "single", "max_length": 4, "metric": "loss"},
    ),
    checkpoint_storage=sys.argv[1],
    unmanaged=core_v2.UnmanagedConfig(
        external_experiment_id="theirs", external_trial_id=sys.argv[2]
    ),
)
latest, start = core_v2.info.latest_checkpoint, 0
if latest is not None:
    with core_v2.checkpoint.restore_path(latest) as path:
        start = int((path / "step").read_text())
print("begins at", start)
for op in core_v2.searcher.operations():
    for step in range(start + 1, op.length + 1):
        core_v2.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
        with core_v2.checkpoint.store_path({"steps_completed": step}) as (path, uuid):
            (path / "step").write_text(str(step))
        op.report_progress(step)
        if step == 2 and start == 0 and sys.argv[2] == "one":
            # As when its machine is lost. (After an exception a thread of theirs would keep it alive.)
            os.kill(os.getpid(), signal.SIGKILL)
    core_v2.train.report_validation_metrics(steps_completed=step, metrics={"loss": 0.25})
    op.report_completed(0.25)
core_v2.close()
"""


def run(cluster, python, script, folder, *words, status=0):
    file = folder / "outside.py"
    file.write_text(script)
    environment = os.environ | {
        "DET_MASTER": cluster.address,
        "DET_DEBUG_CONFIG_PATH": str(folder / "settings"),
        "PYTHONWARNINGS": "ignore",
    }
    command = [str(python), str(file), *map(str, words)]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def steps_of(cluster, trial_id, group):
    pages = cluster.stream("trials/metrics/trial_metrics", trialIds=trial_id, group=group)
    return [(row["trialRunId"], row["totalBatches"]) for page in pages for row in page["metrics"]]


def test_a_plain_script_reports_from_outside(local_cluster, tmp_path):
    cluster = local_cluster(slots=1)
    run(cluster, sys.executable, PLAIN, tmp_path, status=3)
    assert cluster.experiment(1)["state"] == "STATE_ERROR"
    run(cluster, sys.executable, PLAIN, tmp_path)
    assert cluster.wait_for_end(1)["state"] == "STATE_COMPLETED"
    (trial,) = cluster.trials(1)
    assert (trial["hparams"], trial["restarts"], trial["trialRunId"]) == ({"lr": 0.5}, 1, 2)
    assert trial["searcherMetricValue"] == 0.25
    assert trial["bestCheckpoint"]["uuid"] == "by-hand-4"
    assert trial["summaryMetrics"]["validation_metrics"]["loss"]["count"] == 4
    assert steps_of(cluster, 1, "validation") == [(1, 1), (1, 2), (2, 3), (2, 4)]
    lines = ["step 1 of run 1", "step 2 of run 1", "step 3 of run 2", "step 4 of run 2"]
    wait_for(lambda: cluster.logs(1) == lines, 20, f"its lines, not {cluster.logs(1)}")
    listed = cluster.det("e", "list").stdout
    assert "by hand" in listed
    assert "COMPLETED" in listed
    assert "by-hand-4" in cluster.det("e", "lc", "1").stdout
    assert "COMPLETED" in cluster.det("t", "describe", "1").stdout
    assert "step 4 of run 2" in cluster.det("t", "logs", "1").stdout
    assert cluster.get("job-queues")["jobs"] == []
    refusal = cluster.det("e", "pause", "1", check=False)
    assert refusal.returncode == 1
    assert "unmanaged" in refusal.stderr
    # It survives a gateway and a searcher that begin anew, from the log alone.
    for name in ("searcher", "gateway"):
        cluster.kill(name)
    assert cluster.experiment(1)["state"] == "STATE_COMPLETED"
    cluster.det("e", "delete", "1", "--yes")
    wait_for(lambda: "by hand" not in cluster.det("e", "list").stdout, 60, "experiment 1 to be deleted")


def test_the_published_sdk_reports_from_outside(local_cluster, published, tmp_path):
    cluster = local_cluster(slots=1)
    storage = tmp_path / "storage"
    run(cluster, published.python, PUBLISHED, tmp_path, storage, "one", status=-signal.SIGKILL)
    assert cluster.trials(1)[0]["state"] == "STATE_RUNNING"
    told = run(cluster, published.python, PUBLISHED, tmp_path, storage, "one")
    assert "begins at 2" in told
    run(cluster, published.python, PUBLISHED, tmp_path, storage, "two")
    experiment = cluster.wait_for_end(1)
    assert experiment["state"] == "STATE_COMPLETED"
    assert (experiment["name"], experiment["labels"], experiment["unmanaged"]) == (
        "with their SDK",
        ["outside"],
        True,
    )
    first, second = cluster.trials(1)
    assert [first["state"], second["state"]] == ["STATE_COMPLETED"] * 2
    assert (first["restarts"], second["restarts"]) == (1, 0)
    assert steps_of(cluster, first["id"], "training") == [(1, 1), (1, 2), (2, 3), (2, 4)]
    assert first["checkpointCount"] == 4
    assert experiment["bestTrialSearcherMetric"] == 0.25
    wait_for(lambda: "begins at 2" in cluster.logs(first["id"]), 20, "the lines of the script")
