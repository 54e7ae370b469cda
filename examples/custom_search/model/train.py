"""A small network learns to read digits: one pass over the images per unit of length."""

import pickle

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier

import determined as det

HELD_OUT = 360


def load_data():
    """Training images (1437, 64) and labels, then validation images (360, 64) and labels."""
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    images, labels = digits.data[order] / 16.0, digits.target[order]
    return images[HELD_OUT:], labels[HELD_OUT:], images[:HELD_OUT], labels[:HELD_OUT]


def main():
    info = det.get_cluster_info()
    assert info is not None, "this script runs as a trial: python search.py"
    hparams = info.trial.hparams
    x, y, val_x, val_y = load_data()
    model = MLPClassifier((hparams["hidden"],), learning_rate_init=hparams["lr"], random_state=0)
    epoch = 0
    with det.core.init() as core_context:
        if info.latest_checkpoint is not None:
            with core_context.checkpoint.restore_path(info.latest_checkpoint) as path:
                epoch, model = pickle.loads((path / "state.pkl").read_bytes())
        for op in core_context.searcher.operations():
            while epoch < op.length:
                model.partial_fit(x, y, classes=range(10))
                epoch += 1
            loss = log_loss(val_y, model.predict_proba(val_x), labels=range(10))
            with core_context.checkpoint.store_path({"steps_completed": epoch}) as (path, _):
                (path / "state.pkl").write_bytes(pickle.dumps((epoch, model)))
            core_context.train.report_validation_metrics(epoch, {"loss": loss})
            op.report_completed(loss)


if __name__ == "__main__":
    main()
