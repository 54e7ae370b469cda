"""Stopped at any batch and resumed, a run is the one that was never stopped (Trainer spec, D3 to D16)."""

import os

import numpy as np
import pytest
import torch

from determined import pytorch
from determined.pytorch import Batch
from tests.sdk.pytorch.trials import OneVar, Random

TOTAL = 20


def run(aggregation, workers, *, stop=None, checkpoint=None, uuids=None):
    class Stopping(Random):
        def train_batch(self, batch, epoch_idx, batch_idx):
            if batch_idx + 1 == stop:
                self.context.set_stop_requested(True)
            return super().train_batch(batch, epoch_idx, batch_idx)

        def build_callbacks(self):
            class Keep(pytorch.PyTorchCallback):
                def on_checkpoint_upload_end(self, uuid):
                    uuids.append(uuid)

            return {"keep": Keep()} if uuids is not None else {}

    torch.manual_seed(3)
    np.random.seed(3)
    with pytorch.init(aggregation_frequency=aggregation, enable_tensorboard_logging=False) as context:
        trial = Stopping(context, workers=workers)
        pytorch.Trainer(trial, context).fit(
            max_length=Batch(TOTAL),
            reporting_period=Batch(1),
            validation_period=Batch(6),
            checkpoint_policy="none",
            latest_checkpoint=checkpoint,
        )
    return trial


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The whole run, by aggregation."""
    runs = {}

    def give(aggregation):
        if aggregation not in runs:
            runs[aggregation] = run(aggregation, 0)
        return runs[aggregation]

    return give


@pytest.mark.parametrize("aggregation", [1, 2])
@pytest.mark.parametrize("stop", range(1, TOTAL))
def test_at_every_batch(undisturbed, aggregation, stop):
    _check(undisturbed(aggregation), aggregation, 0, stop)


# An epoch has twelve batches.
@pytest.mark.parametrize(
    "stop",
    [pytest.param(n, marks=() if n in (1, 12, 17) else pytest.mark.full) for n in range(1, TOTAL)],
)
def test_with_loader_workers(undisturbed, stop):
    _check(undisturbed(2), 2, 2, stop)


def _check(whole, aggregation, workers, stop):
    uuids = []
    first = run(aggregation, workers, stop=stop, uuids=uuids)
    # Chance has moved on since: what counts is in the checkpoint.
    torch.manual_seed(99)
    second = run(aggregation, workers, checkpoint=uuids[-1])
    assert first.batches + second.batches == whole.batches
    assert first.losses + second.losses == whole.losses
    assert torch.equal(second.weights, whole.weights)


def test_each_epoch_has_every_record_once(undisturbed):
    per_epoch = 12
    for epoch in (0, 1):
        batches = undisturbed(1).batches[epoch * per_epoch : (epoch + 1) * per_epoch]
        records = sorted(record for _, batch in batches for record in batch)
        assert records == list(range(24))[: len(records)] or epoch == 1
    first = [batch for _, batch in undisturbed(1).batches[:per_epoch]]
    second = [batch for _, batch in undisturbed(1).batches[per_epoch:]]
    assert first[: len(second)] != second


def test_a_run_that_is_complete_only_validates_again():
    uuids = []

    class Keeping(OneVar):
        def build_callbacks(self):
            class Keep(pytorch.PyTorchCallback):
                def on_checkpoint_upload_end(self, uuid):
                    uuids.append(uuid)

            return {"keep": Keep()}

    for checkpoint in (None, True):
        with pytorch.init(enable_tensorboard_logging=False) as context:
            trial = Keeping(context)
            pytorch.Trainer(trial, context).fit(
                max_length=Batch(10), latest_checkpoint=checkpoint and uuids[-1]
            )
        if checkpoint:
            assert trial.batches == []
            assert context.get_initial_batch() == 10
    assert len(uuids) == 1


def test_local_code_is_in_the_checkpoint(folder):
    (folder / "code" / "train.py").write_text("print(1)\n")
    (folder / "code" / "weights.bin").write_bytes(b"x" * 100)
    (folder / "code" / ".detignore").write_text("*.bin\n")
    os.symlink("nowhere", folder / "code" / "dangling")
    with pytorch.init(enable_tensorboard_logging=False) as context:
        pytorch.Trainer(OneVar(context), context).fit(max_length=Batch(4), checkpoint_period=Batch(2))
    copies = sorted((folder / "data").rglob("code"))
    assert len(copies) == 2
    assert all(sorted(p.name for p in copy.iterdir()) == ["train.py"] for copy in copies)
    first, second = ((copy / "train.py").stat().st_ino for copy in copies)
    assert first == second


@pytest.mark.parametrize("place", ["data", "."])
def test_checkpoints_in_the_folder_of_the_code_are_no_code(folder, monkeypatch, place):
    data = folder / "code" / place
    monkeypatch.setenv("XDG_DATA_HOME", str(data))
    (folder / "code" / "train.py").write_text("print(1)\n")
    with pytorch.init(enable_tensorboard_logging=False) as context:
        pytorch.Trainer(OneVar(context), context).fit(max_length=Batch(6), checkpoint_period=Batch(2))
    saved = [path.parent for path in data.rglob("state_dict.pth")]
    assert len(saved) == 3
    for checkpoint in saved:
        assert [path.name for path in (checkpoint / "code").rglob("*") if path.is_file()] == ["train.py"]
