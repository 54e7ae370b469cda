"""No warm start changes a result: the digits search gives the same metrics cold and warm, bit for bit."""

import json
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(3600)
EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_search"
TRIALS = 200
CONFIG = """
name: digits
entrypoint: python3 train.py
hyperparameters:
  learning_rate: {type: log, base: 10, minval: -3.0, maxval: -1.8}
  channels: {type: categorical, vals: [8, 16]}
  dropout: {type: double, minval: 0.0, maxval: 0.4}
  batch_size: 64
searcher:
  {name: random, metric: validation_accuracy, max_length: {epochs: 1}, max_trials: TRIALS}
max_restarts: 0
reproducibility: {experiment_seed: 7}
environment: {warm: WARM}
"""


@pytest.fixture
def example(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    return shutil.copytree(EXAMPLE, tmp_path / "digits")


def metrics_of(cluster, folder, warm):
    """Of each point of the search, all that was reported."""
    text = CONFIG.replace("TRIALS", str(TRIALS)).replace("WARM", str(warm).lower())
    (folder / "config.yaml").write_text(text)
    id = cluster.create("config.yaml", folder)
    assert cluster.wait_for_end(id, 3000)["state"] == "STATE_COMPLETED"
    metrics = {}
    for trial in cluster.get(f"experiments/{id}/trials?limit=0")["trials"]:
        rows = cluster.stream("trials/metrics/validation_metrics", trialIds=trial["id"])
        metrics[str(trial["hparams"])] = [m["metrics"]["avgMetrics"] for row in rows for m in row["metrics"]]
    return metrics


def test_metrics_are_the_same_bit_for_bit(cluster, example):
    warm = metrics_of(cluster, example, True)
    assert len(warm) == TRIALS
    started = [json.loads(line) for line in worker_log(cluster) if '"run.started"' in line]
    assert sum(line["warm"] for line in started) > TRIALS * 0.8, started
    assert metrics_of(cluster, example, False) == warm


def worker_log(cluster):
    return [
        line for path in cluster.home.folder("logs").glob("*.log") for line in path.read_text().splitlines()
    ]
