"""A small network learns digits with Lightning's Trainer.

Run it here with `python3 train.py`, on a cluster with `det e create const.yaml . -f`.
"""

import logging
import os

import lightning
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import determined as det
from determined.lightning import DetCallback

LOCAL_HPARAMS = {"learning_rate": 0.003, "hidden_size": 64, "batch_size": 16}
TEST_IMAGES = 297


def digits(train):
    """Images (64,) with values from 0 to 1 and their labels, from scikit-learn."""
    dataset = load_digits()
    order = np.random.RandomState(0).permutation(len(dataset.target))
    part = order[TEST_IMAGES:] if train else order[:TEST_IMAGES]
    return TensorDataset(
        torch.tensor(dataset.data[part] / 16, dtype=torch.float32), torch.tensor(dataset.target[part])
    )


class Network(lightning.LightningModule):
    """One hidden layer."""

    def __init__(self, hparams):
        super().__init__()
        self.learning_rate = hparams["learning_rate"]
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(64, hparams["hidden_size"]),
            torch.nn.ReLU(),
            torch.nn.Linear(hparams["hidden_size"], 10),
        )

    def training_step(self, batch, _):
        images, labels = batch
        loss = torch.nn.functional.cross_entropy(self.layers(images), labels)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        images, labels = batch
        scores = self.layers(images)
        self.log("val_loss", torch.nn.functional.cross_entropy(scores, labels), sync_dist=True)
        self.log("val_accuracy", (scores.argmax(-1) == labels).float().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.learning_rate)


def main(core_context, info):
    # Several trials share this machine's cores.
    torch.set_num_threads(1)
    hparams = info.trial.hparams if info else LOCAL_HPARAMS
    lightning.seed_everything(info.trial.trial_seed if info else 1)
    callback = DetCallback(core_context)
    trainer = lightning.Trainer(
        max_epochs=callback.max_epochs or 12,
        callbacks=[callback],
        logger=False,
        log_every_n_steps=50,
        enable_progress_bar=False,
        accelerator="auto" if torch.cuda.is_available() else "cpu",
        devices=core_context.distributed.local_size,
        num_nodes=core_context.distributed.cross_size,
    )
    trainer.fit(
        Network(hparams),
        DataLoader(digits(train=True), batch_size=hparams["batch_size"], shuffle=True),
        DataLoader(digits(train=False), batch_size=64),
        ckpt_path=callback.ckpt_path,
    )


def ranks():
    """The processes of the trial; None if there is only one."""
    if not os.environ.get("USE_TORCH_DISTRIBUTED"):
        return None
    torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return det.core.DistributedContext.from_torch_distributed()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    with det.core.init(distributed=ranks()) as core_context:
        main(core_context, det.get_cluster_info())
