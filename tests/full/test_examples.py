"""The examples that train for a while do what their READMEs say."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(900)
EXAMPLES = Path(__file__).parents[2] / "examples"


def copied(name, tmp_path):
    return shutil.copytree(EXAMPLES / name, tmp_path / name)


def test_the_digits_search_finds_a_good_network(cluster, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    id = cluster.create("adaptive.yaml", copied("digits_search", tmp_path))
    assert cluster.wait_for_end(id, 280)["state"] == "STATE_COMPLETED"
    trials = cluster.trials(id)
    assert len(trials) == 16
    best = max(t["bestValidation"]["metrics"]["avgMetrics"]["validation_accuracy"] for t in trials)
    assert best >= 0.97


def results(trials, metric):
    return [t["bestValidation"]["metrics"]["avgMetrics"][metric] for t in trials]


def test_tpe_goes_where_results_are_good(cluster, tmp_path):
    for needed in ("optuna", "sklearn"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    id = cluster.create("tpe.yaml", copied("tpe_digits", tmp_path))
    assert cluster.wait_for_end(id, 240)["state"] == "STATE_COMPLETED"
    errors = results(sorted(cluster.trials(id), key=lambda t: t["id"]), "validation_error")
    assert len(errors) == 30
    assert min(errors) <= 0.025
    assert sorted(errors[10:])[10] < 0.05 < sorted(errors[:10])[5]


def test_a_population_is_trained_from_checkpoints_of_its_best(cluster, tmp_path):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    id = cluster.create("pbt.yaml", copied("pbt_digits", tmp_path))
    assert cluster.wait_for_end(id, 240)["state"] == "STATE_COMPLETED"
    losses = results(cluster.trials(id), "validation_loss")
    assert len(losses) == 14
    assert min(losses) <= 0.21


def accuracy(trial):
    return trial["bestValidation"]["metrics"]["avgMetrics"]["test_accuracy"]


def test_mnist_in_five_steps(cluster, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    folder = copied("core_api_mnist", tmp_path)
    const = cluster.create("const.yaml", folder)
    metrics = cluster.create("metrics.yaml", folder)
    saving = cluster.create("checkpoints.yaml", folder)
    wait_for(lambda: cluster.get(f"experiments/{saving}/checkpoints")["checkpoints"], 90, "a checkpoint")
    cluster.tell(saving, "pause")
    wait_for(lambda: cluster.trials(saving)[0]["state"] == "STATE_PAUSED", 60, "the pause")
    cluster.tell(saving, "activate")
    for id in (const, metrics, saving):
        assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    assert "test: loss" in cluster.logs(cluster.first_trial(const))[-1]
    # Paused and resumed, it reports each epoch once.
    rows = cluster.stream("trials/metrics/validation_metrics", trialIds=cluster.trials(saving)[0]["id"])
    epochs = [m["metrics"]["avgMetrics"]["epoch"] for page in rows for m in page["metrics"]]
    assert epochs == [1, 2, 3, 4]
    assert accuracy(cluster.trials(saving)[0]) > 0.85

    search = cluster.create("adaptive.yaml", folder, "--config", "searcher.max_trials=4")
    assert cluster.wait_for_end(search, 200)["state"] == "STATE_COMPLETED"
    assert len(cluster.trials(search)) == 4


def test_keras_is_paused_and_goes_on(cluster, tmp_path):
    for needed in ("torch", "keras", "sklearn"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    folder = copied("keras_digits", tmp_path)
    id = cluster.create("const.yaml", folder)
    wait_for(lambda: cluster.get(f"experiments/{id}/checkpoints")["checkpoints"], 120, "a checkpoint")
    cluster.tell(id, "pause")
    wait_for(lambda: cluster.trials(id)[0]["state"] == "STATE_PAUSED", 60, "the pause")
    cluster.tell(id, "activate")
    both = cluster.create("distributed.yaml", folder, "--config", "searcher.max_length.epochs=3")
    for experiment in (id, both):
        assert cluster.wait_for_end(experiment, 240)["state"] == "STATE_COMPLETED"
    # Paused and resumed, each epoch is validated once: 47 batches of 32 in 1,500 records.
    rows = cluster.stream("trials/metrics/validation_metrics", trialIds=cluster.trials(id)[0]["id"])
    assert [m["totalBatches"] for page in rows for m in page["metrics"]] == [47 * n for n in range(1, 9)]
    assert results(cluster.trials(id), "val_accuracy")[0] > 0.93
    assert results(cluster.trials(both), "val_accuracy")[0] > 0.8


@pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="deepspeed is not installed")
def test_deepspeed_is_paused_and_goes_on_under_its_own_launcher(cluster, tmp_path):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    id = cluster.create("distributed.yaml", copied("deepspeed_digits", tmp_path))
    wait_for(lambda: cluster.get(f"experiments/{id}/checkpoints")["checkpoints"], 240, "a checkpoint")
    cluster.tell(id, "pause")
    wait_for(lambda: cluster.trials(id)[0]["state"] == "STATE_PAUSED", 120, "the pause")
    cluster.tell(id, "activate")
    assert cluster.wait_for_end(id, 300)["state"] == "STATE_COMPLETED"
    # 94 micro batches in 1,500 records, 47 on each slot, two in a batch: epochs of 23 batches.
    rows = cluster.stream("trials/metrics/validation_metrics", trialIds=cluster.trials(id)[0]["id"])
    assert [m["totalBatches"] for page in rows for m in page["metrics"]] == [23 * n for n in range(1, 9)]
    assert results(cluster.trials(id), "accuracy")[0] > 0.9
