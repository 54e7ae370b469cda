"""A disk that fills under a whole cluster, and has room again: told, refused where it must be, survived."""

import pytest
import requests

from services.local.broker_recovery import write_error
from tests.fixtures.local_cluster import LocalCluster, wait_for

pytestmark = pytest.mark.timeout(600)
MEGABYTES = 256
RESERVE = (MEGABYTES << 20) // 20
CONFIG = """
name: full-disk
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 3}
max_restarts: 0
"""
SCRIPT = """
import os, time
import determined as det
with det.core.init() as core:
    for op in core.searcher.operations():
        step = 0
        while not os.path.exists(GO):
            step += 1
            core.train.report_training_metrics(step, {"loss": float(step)})
            time.sleep(0.05)
        core.train.report_validation_metrics(step, {"loss": 0.5})
        op.report_completed(0.5)
        print("steps:", step)
"""


@pytest.fixture
def disk(small_disk):
    return small_disk(MEGABYTES)


@pytest.fixture
def cluster(disk):
    made = LocalCluster(disk.path)
    yield made.up()
    made.down()


def points(cluster, trial):
    pages = cluster.stream("trials/metrics/training_metrics", trialIds=trial)
    return [row["metrics"]["avgMetrics"]["loss"] for page in pages for row in page["metrics"]]


def disk_numbers(cluster):
    port = cluster.home.read("ports.json")["gateway"]
    lines = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text.splitlines()
    return {line.split("{")[0]: float(line.split()[-1]) for line in lines if 'disk="log"' in line}


@pytest.mark.full
@pytest.mark.expected_log(".*", reason="everybody says that the disk is full")
def test_a_full_disk_is_announced_and_recovered_from(cluster, disk, tmp_path):
    model, go = tmp_path / "model", tmp_path / "go"
    model.mkdir()
    (model / "train.py").write_text(SCRIPT.replace("GO", repr(str(go))))
    (model / "config.yaml").write_text(CONFIG)
    id = cluster.create("config.yaml", model)
    trial = cluster.first_trial(id)
    wait_for(lambda: len(points(cluster, trial)) > 3, 60, "the first reports")

    disk.fill(leave=RESERVE - (2 << 20))
    refused = cluster.det("e", "create", "config.yaml", ".", cwd=model, check=False)
    assert refused.returncode == 1
    assert "the disk of the log has" in refused.stderr
    assert f"at {cluster.home.path / 'broker'}" in refused.stderr
    numbers = disk_numbers(cluster)
    assert numbers["steadfast_disk_free_bytes"] < numbers["steadfast_disk_reserve_bytes"] == RESERVE
    before = len(points(cluster, trial))
    wait_for(lambda: len(points(cluster, trial)) > before + 3, 60, "reports of what runs already")

    broker, monitor = cluster.pid("broker"), cluster.home.read("ports.json")["monitor"]
    disk.fill()
    wait_for(lambda: write_error(monitor), 60, "the broker to be unable to write")
    assert cluster.pid("broker") == broker

    disk.make_room()
    wait_for(lambda: cluster.pid("broker") != broker, 60, "the broker to be started again")
    another = cluster.create("config.yaml", model)
    go.touch()
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    assert cluster.wait_for_end(another)["state"] == "STATE_COMPLETED"
    (steps,) = (line for line in cluster.logs(trial) if line.startswith("steps:"))
    assert points(cluster, trial) == [float(n) for n in range(1, int(steps.split()[1]) + 1)]
