"""A cluster is backed up while it works, destroyed, and restored elsewhere: everything is as it was."""

import dataclasses
import os
import shutil

import pytest

from services.local.backup import CannotBackUp, back_up
from services.local.control import up
from services.local.home import Home
from services.local.restore import restore
from tests.fixtures.local_cluster import LocalCluster, wait_for

pytestmark = pytest.mark.timeout(300)
KEY = b"correct horse battery staple"
CONFIG = """
name: kept
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 20}
max_restarts: 5
"""
SCRIPT = """
import determined as det, os
with det.core.init() as core:
    for op in core.searcher.operations():
        for step in range(1, op.length + 1):
            core.train.report_training_metrics(step, {"loss": 1.0 / step})
        core.train.report_validation_metrics(op.length, {"loss": 0.5})
        with core.checkpoint.store_path({"steps_completed": op.length}) as (path, id):
            (path / "weights").write_text("the weights")
        print("a line")
        op.report_completed(0.5)
"""
STEP = "            core.train.report_training_metrics"
BUSY = SCRIPT.replace(STEP, f"            import time; time.sleep(0.2)\n{STEP}")


def submitted(cluster, folder, script=SCRIPT, length=20):
    folder.mkdir()
    (folder / "train.py").write_text(script)
    (folder / "config.yaml").write_text(CONFIG.replace("max_length: 20", f"max_length: {length}"))
    return cluster.create("config.yaml", folder)


def answers(cluster, id):
    (trial,) = cluster.trials(id)
    checkpoints = cluster.get(f"experiments/{id}/checkpoints")["checkpoints"]
    got = cluster.home.path / "got"
    cluster.det("checkpoint", "download", checkpoints[0]["uuid"], "-o", str(got), "--mode", "master")
    weights = (got / "weights").read_text()
    shutil.rmtree(got)
    return (
        cluster.experiment(id),
        trial,
        checkpoints,
        weights,
        cluster.stream("trials/metrics/training_metrics", trialIds=trial["id"]),
        cluster.logs(trial["id"]),
        cluster.get(f"why/experiment/{id}"),
    )


@pytest.mark.expected_log("worker.failed", reason="the one of the backup is not given up yet")
def test_what_was_backed_up_under_load_is_restored_elsewhere(local_cluster, tmp_path):
    cluster = local_cluster(slots=2, settings={"STEADFAST_RECONNECT_WAIT_S": "3"})
    id = submitted(cluster, tmp_path / "first")
    cluster.wait_for_end(id)
    busy = submitted(cluster, tmp_path / "busy", BUSY, 10_000)
    wait_for(lambda: cluster.experiment(busy)["state"] == "STATE_RUNNING", 60, "the load to run")
    before = answers(cluster, id)
    target = tmp_path / "backup"
    back_up(cluster.home, target, KEY)
    assert answers(cluster, id) == before
    secret = (cluster.home.path / "secrets" / "authority.json").read_bytes()
    cluster.down()
    shutil.rmtree(cluster.home.path)

    assert not [path for path in target.rglob("*") if path.is_file() and secret in path.read_bytes()]
    there = Home("test", tmp_path / "elsewhere")
    refused(there, target, b"another key than that one", "not the key")
    half = tmp_path / "half"
    shutil.copytree(target, half)
    (half / "streams" / "CONTROL").write_bytes((target / "streams" / "CONTROL").read_bytes()[:-100])
    refused(there, half, KEY, r"is incomplete or damaged: streams/CONTROL")
    (half / "manifest.json").unlink()
    refused(there, half, KEY, "not a complete backup")

    restore(there, target, KEY, cluster.plan.port)
    with pytest.raises(CannotBackUp, match="already"):
        restore(there, target, KEY)
    plan = dataclasses.replace(there.plan(), ends_with=os.getpid())
    restored = LocalCluster(tmp_path / "elsewhere", port=plan.port)
    try:
        up(plan, there)
        assert answers(restored, id) == before
        restored.tell(busy, "kill")
        restored.wait_for_end(busy)
    finally:
        restored.down()


def refused(home: Home, source, key, why):
    with pytest.raises(CannotBackUp, match=why):
        restore(home, source, key)
    assert not home.path.exists()
