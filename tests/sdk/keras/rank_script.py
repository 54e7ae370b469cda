"""What two ranks of a Keras trial do together: `rank_script.py FOLDER`; each rank leaves a JSON file."""

import json
import os
import pathlib
import sys

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch

from determined import core
from determined._training.plan import Plan
from determined._training.units import Batch
from determined.keras._entry import train_here
from tests.sdk.keras.trials import Random, X, Y


class Plain(Random):
    """No chance but the order of the records; data of which each rank has its share."""

    def build_model(self):
        self.model = self.context.wrap_model(keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]))
        self.before = [w.tolist() for w in self.model.get_weights()]
        self.model.compile(self.context.wrap_optimizer(keras.optimizers.SGD(0.1)), "mse", metrics=["mae"])
        return self.model

    def build_validation_data_loader(self):
        return X[:10], Y[:10]


def main(folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    trial = train_here(
        Plain,
        {"global_batch_size": 8},
        {"reproducibility": {"experiment_seed": 3}},
        Plan(
            max_length=Batch(5),
            reporting_period=Batch(5),
            validation_period=Batch(5),
            legacy=True,
        ),
        group=core.DistributedContext.from_torch_distributed(),
    )
    outcome = {
        "before": trial.before,
        "weights": [w.tolist() for w in trial.model.get_weights()],
        "tests": trial.recorder.tests,
        "windows": trial.recorder.windows,
        "epoch": trial.context._epoch_len,
        "mae": float(np.mean(np.abs(trial.model.predict(X[:10], verbose=0) - Y[:10]))),
    }
    (pathlib.Path(folder) / f"{rank}.json").write_text(json.dumps(outcome))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
