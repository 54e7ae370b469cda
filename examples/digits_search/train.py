"""A small convolutional network learns to read digits, as one trial of a hyperparameter search.

The search says how many epochs to train; the trial trains, validates, reports, and asks again. It may be
stopped after any epoch and resumes from its last checkpoint.
"""

import logging
import pathlib

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import determined as det

HELD_OUT = 360
"""Number of images held out for validation; 1,437 remain."""


def load_data() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training images (1437, 1, 8, 8) and labels, then validation images (360, 1, 8, 8) and labels."""
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    images = torch.tensor(digits.images[order] / 16.0, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target[order])
    return images[HELD_OUT:], labels[HELD_OUT:], images[:HELD_OUT], labels[:HELD_OUT]


def build_model(channels: int, dropout: float) -> nn.Module:
    """Two convolutions and a linear layer: (batch, 1, 8, 8) -> (batch, 10)."""
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(2 * channels * 16, 10),
    )


class Training:
    """Model, optimizer and data of one trial."""

    def __init__(self, hparams: dict, seed: int) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self._seed = seed
        self._batch_size = hparams["batch_size"]
        self.epochs = 0
        self.model = build_model(hparams["channels"], hparams["dropout"])
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=hparams["learning_rate"])
        self._x, self._y, self._val_x, self._val_y = load_data()

    def train_one_epoch(self) -> float:
        """One pass over the training images in a new order; returns the mean loss."""
        generator = torch.Generator().manual_seed(self._seed + self.epochs)
        torch.manual_seed(self._seed + self.epochs)
        self.model.train()
        total = 0.0
        for batch in torch.randperm(len(self._x), generator=generator).split(self._batch_size):
            loss = nn.functional.cross_entropy(self.model(self._x[batch]), self._y[batch])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(batch)
        self.epochs += 1
        return total / len(self._x)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Loss and accuracy on the held-out images."""
        self.model.eval()
        scores = self.model(self._val_x)
        accuracy = (scores.argmax(1) == self._val_y).float().mean().item()
        loss = nn.functional.cross_entropy(scores, self._val_y).item()
        return {"validation_accuracy": accuracy, "validation_loss": loss}

    def save(self, folder: pathlib.Path) -> None:
        """Save everything that the next run needs."""
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state | {"epochs": self.epochs}, folder / "state.pt")

    def load(self, folder: pathlib.Path) -> None:
        """Resume from a checkpoint."""
        state = torch.load(folder / "state.pt", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epochs = state["epochs"]


def save(core_context: det.core.Context, training: Training) -> None:
    """Store a checkpoint and tell the cluster."""
    with core_context.checkpoint.store_path({"steps_completed": training.epochs}) as (path, _):
        training.save(path)


def run(core_context: det.core.Context, training: Training) -> None:
    """Train to each length that the search asks for, until it asks for no more."""
    for op in core_context.searcher.operations():
        while training.epochs < op.length:
            loss = training.train_one_epoch()
            core_context.train.report_training_metrics(training.epochs, {"loss": loss})
            op.report_progress(training.epochs)
            if core_context.preempt.should_preempt():
                save(core_context, training)
                return
        save(core_context, training)
        metrics = training.validate()
        logging.info("after %d epochs: %s", training.epochs, metrics)
        core_context.train.report_validation_metrics(training.epochs, metrics)
        op.report_completed(metrics["validation_accuracy"])


def main() -> None:
    info = det.get_cluster_info()
    assert info is not None, "this script runs as a trial: det e create adaptive.yaml . -f"
    training = Training(info.trial.hparams, info.trial.trial_seed)
    with det.core.init() as core_context:
        if info.latest_checkpoint is not None:
            with core_context.checkpoint.restore_path(info.latest_checkpoint) as path:
                training.load(path)
        run(core_context, training)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    main()
