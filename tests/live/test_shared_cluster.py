"""A cluster of one metrics process becomes one of two. Each has its own rights, and either may be killed."""

import pytest
import requests

from tests.fixtures.local_cluster import LocalCluster, wait_for

pytestmark = pytest.mark.timeout(600)
SCRIPT = """
import time
import determined as det

with det.core.init() as core:
    lr = det.get_cluster_info().trial.hparams["lr"]
    for operation in core.searcher.operations():
        for step in range(1, 301):
            core.train.report_training_metrics(step, {"loss": lr / step})
            print("step", step, flush=True)
            time.sleep(0.01)
        core.train.report_validation_metrics(300, {"loss": lr})
        operation.report_completed(lr)
"""
SEARCH = {
    "hyperparameters": {"lr": {"type": "categorical", "vals": [1.0, 2.0, 3.0, 4.0]}},
    "searcher": {"name": "grid", "metric": "loss", "max_length": {"batches": 300}},
}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "clusters"


@pytest.mark.full
def test_one_process_becomes_two(folder):
    alone = LocalCluster(folder, slots=4).up()
    try:
        first = alone.submit(SCRIPT, **SEARCH)
        alone.wait_for_end(first)
        _is_whole(alone, first)
    finally:
        alone.down()
    two = LocalCluster(folder, slots=4, port=alone.plan.port, settings={"STEADFAST_METRICS_SHARDS": "2"}).up()
    try:
        assert {"metrics", "metrics-2"} <= set(two.names())
        second = two.submit(SCRIPT, **SEARCH)
        wait_for(lambda: len(two.trials(second)) == 4, 60, "all trials")
        for name in ("metrics-2", "metrics", "metrics-2"):
            two.kill(name)
        two.wait_for_end(second)
        for experiment in (first, second):
            _is_whole(two, experiment)
        wait_for(
            lambda: requests.get(f"{two.address}/health", timeout=60).json()["status"] == "up", 60, "health"
        )
        programs = {process["program"] for process in two.get("master/positions")["processes"]}
        assert {"metrics", "metrics-2"} <= programs
        _what_is_away_is_named(two, second)
    finally:
        two.down()


def _what_is_away_is_named(cluster, experiment):
    """Only what needs a process that is away fails, and says so."""
    cluster.stop("metrics-2")
    health = f"{cluster.address}/health"
    wait_for(lambda: "no metrics-2 replica leads" in requests.get(health, timeout=60).text, 60, "the sign")
    trials = cluster.experiment(experiment)["trialIds"]
    here, away = (next(id for id in trials if id % 2 == rest) for rest in (0, 1))
    path = "trials/metrics/training_metrics"
    assert cluster.stream(path, trialIds=[here])
    headers = {"Authorization": f"Bearer {cluster.sign_in()}"}
    address = f"{cluster.address}/api/v1/{path}"
    answer = requests.get(address, params={"trialIds": [away]}, headers=headers, timeout=60)
    assert "the metrics-2 service is not running" in answer.text


def _is_whole(cluster, experiment):
    """Every point, line and validation of each trial of an experiment is there once, and in order."""
    trials = [trial["id"] for trial in cluster.trials(experiment)]
    rows = cluster.stream("trials/metrics/training_metrics", trialIds=trials)
    steps = [(row["trialId"], row["totalBatches"]) for page in rows for row in page["metrics"]]
    assert steps == [(id, step) for id in sorted(trials) for step in range(1, 301)]
    for id in trials:
        lines = [line for line in cluster.logs(id) if "step " in line]
        assert [line.rpartition("step ")[2] for line in lines] == [str(step) for step in range(1, 301)]
    names = cluster.stream("experiments/metrics-stream/metric-names", ids=[experiment])
    groups = [metric["group"] for metric in names[-1]["metricNames"] if metric["name"] == "loss"]
    assert groups == ["training", "validation"]
    shown = cluster.experiment(experiment)
    assert shown["state"] == "STATE_COMPLETED"
    best = [trial["bestValidation"]["metrics"]["avgMetrics"]["loss"] for trial in cluster.trials(experiment)]
    assert sorted(best) == [1.0, 2.0, 3.0, 4.0]
