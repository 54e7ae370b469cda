"""One batch of a trial class without a cluster."""

from __future__ import annotations

import random

import pytest

from determined.experimental import _test_run, test_one_batch


def test_hyperparameters_are_drawn():
    space = {
        "constant": 3,
        "said": {"type": "const", "val": None},
        "choice": {"type": "categorical", "vals": ["a", "b"]},
        "group": {"whole": {"type": "int", "minval": 2, "maxval": 4}},
        "real": {"type": "double", "minval": 0.5, "maxval": 1.5},
        "size": {"type": "log", "base": 10, "minval": -3, "maxval": -1},
    }
    for seed in range(20):
        hparams = _test_run.drawn(space, random.Random(seed))
        assert (hparams["constant"], hparams["said"]) == (3, None)
        assert hparams["choice"] in "ab"
        assert hparams["group"]["whole"] in (2, 3, 4)
        assert 0.5 <= hparams["real"] <= 1.5
        assert 1e-3 <= hparams["size"] <= 1e-1


def test_defaults_are_merged():
    config = _test_run.whole({"hyperparameters": {"lr": 0.1}})
    assert config["scheduling_unit"] == 100
    with pytest.raises(ValueError, match="hyperparameters"):
        _test_run.whole({"hyperparameters": 7})


def test_a_class_that_is_no_trial():
    pytest.importorskip("torch")
    with pytest.raises(TypeError, match="PyTorchTrial"):
        test_one_batch(dict, {})


def test_one_batch_is_trained_and_nothing_kept(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    from tests.sdk.pytorch.trials import OneVar

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    test_one_batch(OneVar, {"hyperparameters": {"global_batch_size": 2}})
    assert capsys.readouterr().out.endswith("The test experiment passed.\n")
    assert list(tmp_path.rglob("*")) == []
