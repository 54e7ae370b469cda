"""Two ranks, two processes, gloo between them: gradients are averaged, validations are over all records."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest

from determined.errors import InvalidExperimentException
from determined.keras import _ranks
from tests.fixtures.ranks import run_ranks

pytestmark = pytest.mark.timeout(240)
SCRIPT = Path(__file__).with_name("rank_script.py")


@pytest.mark.live
def test_two_ranks_train_one_model(folder, fork_server):
    run_ranks(fork_server.start, [SCRIPT, folder])
    first, second = (json.loads((folder / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second
    assert first["epoch"] == 3
    # Batches of four on each rank are batches of eight: the same as one process on all of them.
    (((weight,),), (bias,)) = first["weights"]
    assert (weight, bias) == pytest.approx(by_hand(first["before"]), abs=1e-6)
    assert first["tests"][-1]["mae"] == pytest.approx(first["mae"], rel=1e-5)
    assert [at for at, _ in first["windows"]] == [5]


def by_hand(before):
    """Five steps of plain descent on batches of eight, in the order of the trial's seed."""
    records, size = 24, 8
    x = np.arange(records, dtype="float64") / records
    weight, bias = float(before[0][0][0]), float(before[1][0])
    for step in range(5):
        epoch, place = divmod(step, records // size)
        order = np.random.RandomState([3, epoch]).permutation(records)
        batch = x[order[place * size : (place + 1) * size]]
        error = weight * batch + bias - batch
        weight, bias = weight - 0.1 * 2 * np.mean(error * batch), bias - 0.1 * 2 * np.mean(error)
    return weight, bias


def test_other_backends_train_on_one_slot(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "tensorflow")
    with pytest.raises(InvalidExperimentException, match="KERAS_BACKEND=torch"):
        _ranks.check_backend()


def test_an_optimizer_that_was_not_wrapped_is_refused():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(InvalidExperimentException, match="wrap_optimizer"):
        _ranks.average_gradients(model, [], 2)


def test_an_optimizer_that_scales_losses_sees_the_mean(monkeypatch):
    inner = keras.optimizers.SGD()
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.LossScaleOptimizer(inner), "mse")
    monkeypatch.setattr(_ranks, "_patch", lambda optimizer, size: patched.append(optimizer))
    patched = []
    _ranks.average_gradients(model, [inner], 2)
    assert patched == [model.optimizer]
