"""A script outside of the cluster that reports to it with nothing but HTTP."""

import json
import re
import sys

import pytest
import requests

from tests.fixtures.local_cluster import wait_for
from tests.fixtures.outside import run, steps_of

pytestmark = pytest.mark.timeout(900)

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
body = {"config": config, "unmanaged": True}
experiment = api("PUT", "experiments/by-external-id/by-hand", body)["experiment"]
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


def test_a_plain_script_reports_from_outside(cluster, tmp_path):
    before = cluster.newest_experiment()
    run(cluster, sys.executable, PLAIN, tmp_path, status=3)
    id = cluster.experiment_after(before)
    # The searcher makes it of the trial's, a moment later.
    wait_for(lambda: cluster.experiment(id)["state"] == "STATE_ERROR", 60, "the experiment's error")
    run(cluster, sys.executable, PLAIN, tmp_path)
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    (trial,) = cluster.trials(id)
    assert (trial["hparams"], trial["restarts"], trial["trialRunId"]) == ({"lr": 0.5}, 1, 2)
    assert trial["searcherMetricValue"] == 0.25
    assert trial["bestCheckpoint"]["uuid"] == "by-hand-4"
    assert trial["summaryMetrics"]["validation_metrics"]["loss"]["count"] == 4
    assert steps_of(cluster, trial["id"], "validation") == [(1, 1), (1, 2), (2, 3), (2, 4)]
    logs = lambda: cluster.logs(trial["id"])  # noqa: E731
    lines = ["step 1 of run 1", "step 2 of run 1", "step 3 of run 2", "step 4 of run 2"]
    wait_for(lambda: logs() == lines, 60, f"its lines, not {logs()}")
    listed = cluster.det("e", "list").stdout
    assert "by hand" in listed
    assert "COMPLETED" in listed
    assert "by-hand-4" in cluster.det("e", "lc", id).stdout
    assert "COMPLETED" in cluster.det("t", "describe", trial["id"]).stdout
    assert "step 4 of run 2" in cluster.det("t", "logs", trial["id"]).stdout
    assert cluster.get("job-queues")["jobs"] == []
    refusal = cluster.det("e", "pause", id, check=False)
    assert refusal.returncode == 1
    assert "unmanaged" in refusal.stderr
    # It survives a gateway and a searcher that begin anew, from the log alone.
    for name in ("searcher", "gateway"):
        cluster.kill(name)
    assert cluster.experiment(id)["state"] == "STATE_COMPLETED"
    cluster.det("e", "delete", id, "--yes")
    wait_for(lambda: "by hand" not in cluster.det("e", "list").stdout, 60, f"experiment {id} to be deleted")


def runs_heard(cluster):
    """How many runs outside of the cluster the searcher waits for and has heard since it started."""
    count = 0
    for target in json.loads((cluster.home.path / "prometheus-targets.json").read_text()):
        text = requests.get(f"http://{target['targets'][0]}/metrics", timeout=60).text
        count += sum(float(n) for n in re.findall(r'steadfast_outside_runs{.*heard="yes".*} (\S+)', text))
    return count


def test_heartbeats_alone_keep_an_unmanaged_trial_alive(cluster):
    """With the rights that a gateway has at the broker; a searcher that starts anew ends nothing."""
    body = {"config": "name: beats", "unmanaged": True}
    experiment = cluster.api("PUT", "experiments/by-external-id/beats", json=body)["experiment"]
    trial = cluster.api("POST", "trials", json={"experimentId": experiment["id"], "hparams": {}})["trial"]
    cluster.api("POST", f"trials/{trial['id']}/start", json={"resume": True})
    before = runs_heard(cluster)
    cluster.api("PATCH", f"trials/{trial['id']}", json={})
    wait_for(lambda: runs_heard(cluster) == before + 1, 60, "the searcher to hear it")
    cluster.kill("searcher")
    ended = {"state": "STATE_COMPLETED"}
    assert cluster.get(f"trials/{trial['id']}")["trial"]["state"] in ("STATE_ACTIVE", "STATE_RUNNING")
    cluster.api("PATCH", f"trials/{trial['id']}", json=ended)
    assert cluster.get(f"trials/{trial['id']}")["trial"]["state"] == "STATE_COMPLETED"
