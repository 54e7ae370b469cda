"""A linear classifier learns to read digits, as one member of a population.

A child starts from its parent's checkpoint with hyperparameters of its own. Its lengths count from its own
start, so a checkpoint records its trial: only that trial resumes the epoch count from it.
"""

import logging
import pathlib
import pickle

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

import determined as det

HELD_OUT = 600
"""Number of images held out for validation; 1,197 remain."""


def load_data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training images (1197, 64) and labels, then validation images (600, 64) and labels."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(labels))
    images, labels = images[order] / 16.0, labels[order]
    return images[HELD_OUT:], labels[HELD_OUT:], images[:HELD_OUT], labels[:HELD_OUT]


class Training:
    """Model and data of one trial."""

    def __init__(self, hparams: dict, seed: int) -> None:
        self.epochs = 0
        self._settings = {"eta0": hparams["learning_rate"], "alpha": hparams["penalty"]}
        self._model = SGDClassifier(
            loss="log_loss", learning_rate="constant", random_state=seed, **self._settings
        )
        self._x, self._y, self._val_x, self._val_y = load_data()

    def train_one_epoch(self) -> None:
        """One pass over the training images."""
        self._model.partial_fit(self._x, self._y, classes=np.arange(10))
        self.epochs += 1

    def validate(self) -> dict[str, float]:
        """Mean log loss and accuracy on the held-out images."""
        chances = np.clip(self._model.predict_proba(self._val_x), 1e-6, 1.0)
        truth = chances[np.arange(len(self._val_y)), self._val_y]
        accuracy = float((chances.argmax(axis=1) == self._val_y).mean())
        return {"validation_loss": float(-np.log(truth).mean()), "validation_accuracy": accuracy}

    def save(self, folder: pathlib.Path, trial_id: int) -> None:
        """Save what the trial, or a child of it, needs to continue."""
        saved = {"model": self._model, "epochs": self.epochs, "trial_id": trial_id}
        (folder / "state.pkl").write_bytes(pickle.dumps(saved))

    def load(self, folder: pathlib.Path, trial_id: int) -> None:
        """Resume from a checkpoint: the trial's own, or its parent's."""
        saved = pickle.loads((folder / "state.pkl").read_bytes())
        self._model = saved["model"].set_params(**self._settings)
        self.epochs = saved["epochs"] if saved["trial_id"] == trial_id else 0


def save(core_context: det.core.Context, training: Training, trial_id: int) -> None:
    """Store a checkpoint and tell the cluster."""
    with core_context.checkpoint.store_path({"steps_completed": training.epochs}) as (path, _):
        training.save(path, trial_id)


def run(core_context: det.core.Context, training: Training, trial_id: int) -> None:
    """Train round after round, until the search asks for no more."""
    for op in core_context.searcher.operations():
        while training.epochs < op.length:
            training.train_one_epoch()
            op.report_progress(training.epochs)
            if core_context.preempt.should_preempt():
                save(core_context, training, trial_id)
                return
        metrics = training.validate()
        logging.info("after %d epochs: %s", training.epochs, metrics)
        core_context.train.report_validation_metrics(training.epochs, metrics)
        # Before the report: once all have reported, children start from stored checkpoints.
        save(core_context, training, trial_id)
        op.report_completed(metrics["validation_loss"])


def main() -> None:
    info = det.get_cluster_info()
    assert info is not None, "this script runs as a trial: det e create pbt.yaml . -f"
    training = Training(info.trial.hparams, info.trial.trial_seed)
    with det.core.init() as core_context:
        if info.latest_checkpoint is not None:
            with core_context.checkpoint.restore_path(info.latest_checkpoint) as path:
                training.load(path, info.trial.trial_id)
        run(core_context, training, info.trial.trial_id)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    main()
