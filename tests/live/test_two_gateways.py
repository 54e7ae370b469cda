"""Two gateways behind a load balancer that sends each request to the next one; either is killed meanwhile."""

import contextlib
import json
import uuid

import pytest
import requests

from determined.experimental import client
from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(600)
SCRIPT = """
import os, pathlib, time
import determined as det

with det.core.init() as core:
    lr = det.get_cluster_info().trial.hparams["lr"]
    for operation in core.searcher.operations():
        core.train.report_training_metrics(1, {"loss": lr})
        print("waits", lr, flush=True)
        while not pathlib.Path(os.environ["GATE"]).exists():
            time.sleep(0.05)
        for step in range(2, 5):
            core.train.report_training_metrics(step, {"loss": lr / step})
        with core.checkpoint.store_path({"steps_completed": 4}) as (path, _):
            (path / "weights").write_text(str(lr))
        core.train.report_validation_metrics(4, {"error": lr})
        operation.report_completed(lr)
"""
CONFIG = {
    "name": "two-gateways",
    "entrypoint": "python3 train.py",
    "hyperparameters": {"lr": {"type": "categorical", "vals": [1.0, 2.0, 3.0]}},
    "searcher": {"name": "grid", "metric": "error", "max_length": {"batches": 4}},
    "max_restarts": 0,
}


@pytest.fixture
def submitted(gateways, tmp_path, monkeypatch):
    """A search whose trials wait for the file `gate`, made by the client: (experiment, gate)."""
    monkeypatch.setenv("DET_MASTER", gateways.cluster.address)
    monkeypatch.setenv("DET_DEBUG_CONFIG_PATH", str(tmp_path / "configuration"))
    monkeypatch.setattr("determined.experimental._client_connection._determined", None)
    code, gate = tmp_path / "code", tmp_path / "gate"
    code.mkdir()
    (code / "train.py").write_text(SCRIPT)
    environment = {"environment_variables": [f"GATE={gate}"]}
    experiment = client.create_experiment(CONFIG | {"environment": environment}, code)
    return experiment, gate


class Page:
    """An open page of the web UI, as far as it is told what changes."""

    def __init__(self, cluster, topics, last_id=""):
        cluster.get("me")
        headers = {"Authorization": f"Bearer {cluster._token}", "Last-Event-ID": last_id}
        where = f"{cluster.address}/api/v1/live"
        self._answer = requests.get(
            where, params={"topics": topics}, headers=headers, stream=True, timeout=60
        )
        assert self._answer.ok, self._answer.text
        self._lines = self._answer.iter_lines(chunk_size=1)
        self.last_id = ""

    def changed_topics(self):
        """What the next event says; None once the gateway is gone."""
        try:
            for line in self._lines:
                name, _, text = line.decode().partition(": ")
                if name == "id":
                    self.last_id = text
                elif name == "data":
                    return set(json.loads(text)["topics"])
        except requests.RequestException:
            pass
        return None

    def close(self):
        """Close the connection, of which the answer never ends by itself."""
        self._answer.close()


@pytest.mark.full
def test_a_search_is_submitted_watched_and_ends_while_either_gateway_is_killed(gateways, submitted):
    cluster, (experiment, gate) = gateways.cluster, submitted
    topic = f"experiment.{experiment.id}"
    with contextlib.closing(Page(cluster, topic)) as page:
        server = gateways.ports.index(gateways.proxy.passed[-1])
        assert page.changed_topics() == {topic}
        wait_for(lambda: len(cluster.trials(experiment.id)) == 3, 60, "the trials")
        gateways.kill(server)
        while page.changed_topics() is not None:
            # What it was told before its gateway ended.
            continue
    # Nobody told this page, as it is away; the other gateway knows where it was.
    cluster.api("PATCH", f"experiments/{experiment.id}", json={"name": "renamed meanwhile"})
    with contextlib.closing(Page(cluster, topic, page.last_id)) as page:
        assert page.changed_topics() == {topic}
    gateways.kill(1 - server)
    gate.touch()
    assert experiment.wait(interval=0.1) is client.ExperimentState.COMPLETED
    cluster.wait_for_end(experiment.id)
    for trial in cluster.trials(experiment.id):
        rows = cluster.stream("trials/metrics/training_metrics", trialIds=trial["id"])
        assert [row["totalBatches"] for batch in rows for row in batch["metrics"]] == [1, 2, 3, 4]
        line_end = f"waits {trial['hparams']['lr']}"
        assert sum(line.endswith(line_end) for line in cluster.logs(trial["id"])) == 1
    assert experiment.top_checkpoint().training.hparams["lr"] == 1.0
    assert set(gateways.proxy.passed) == set(gateways.ports)


def test_what_is_made_is_made_once_and_known_at_once(gateways):
    cluster = gateways.cluster
    for number in range(12):
        key = {"Idempotency-Key": uuid.uuid4().hex}
        name = {"name": f"place {uuid.uuid4().hex}"}
        made = [cluster.api("POST", "workspaces", json=name, headers=key, user="admin") for _ in range(2)]
        assert made[0] == made[1]
        id = made[0]["workspace"]["id"]
        cluster.api("PATCH", f"workspaces/{id}", json={"name": f"renamed {number} {id}"}, user="admin")
        assert cluster.get(f"workspaces/{id}")["workspace"]["name"] == f"renamed {number} {id}"
        cluster.api("DELETE", f"workspaces/{id}", user="admin")
        assert id not in {workspace["id"] for workspace in cluster.get("workspaces")["workspaces"]}
