"""A support vector machine reads digits; one trial fits it once, with its hyperparameters."""

import logging

import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import determined as det

HELD_OUT = 600
"""Number of images held out for validation; 1,197 remain."""


def load_data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training images (1197, 64) and labels, then validation images (600, 64) and labels."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(labels))
    images, labels = images[order] / 16.0, labels[order]
    return images[HELD_OUT:], labels[HELD_OUT:], images[:HELD_OUT], labels[:HELD_OUT]


def error(hparams: dict) -> float:
    """Share of the validation images that are misread."""
    x, y, val_x, val_y = load_data()
    model = SVC(C=hparams["C"], gamma=hparams["gamma"], kernel=hparams["kernel"], degree=hparams["degree"])
    return 1.0 - float(model.fit(x, y).score(val_x, val_y))


def main() -> None:
    info = det.get_cluster_info()
    assert info is not None, "this script runs as a trial: det e create tpe.yaml . -f"
    with det.core.init() as core_context:
        for op in core_context.searcher.operations():
            result = error(info.trial.hparams)
            logging.info("validation error %.4f", result)
            core_context.train.report_validation_metrics(op.length, {"validation_error": result})
            op.report_completed(result)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    main()
