"""A small convolutional network for handwritten digits, as a PyTorchTrial."""

import torch
from torch import nn
from torch.nn import functional

from determined import pytorch

import data


def network(filters: int, dropout: float) -> nn.Module:
    """(batch, 1, 28, 28) -> scores (batch, 10)."""
    return nn.Sequential(
        nn.Conv2d(1, filters, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(filters, 2 * filters, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(2 * filters * 36, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


class MNistTrial(pytorch.PyTorchTrial):
    """The model, its data and its metrics. The platform runs the training loop."""

    def __init__(self, context: pytorch.PyTorchTrialContext) -> None:
        self.context = context
        # Several trials share this machine's cores.
        torch.set_num_threads(1)
        hparams = context.get_hparams()
        self.model = context.wrap_model(network(hparams["n_filters"], hparams["dropout"]))
        self.optimizer = context.wrap_optimizer(
            torch.optim.Adadelta(self.model.parameters(), lr=hparams["learning_rate"])
        )
        context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=1, gamma=0.9),
            step_mode=pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH,
        )

    def build_training_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(
            data.load(train=True), batch_size=self.context.get_per_slot_batch_size(), shuffle=True
        )

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(data.load(train=False), batch_size=self.context.get_per_slot_batch_size())

    def train_batch(self, batch, epoch_idx, batch_idx):
        images, labels = batch
        loss = functional.cross_entropy(self.model(images), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        images, labels = batch
        scores = self.model(images)
        right = (scores.argmax(1) == labels).float().mean()
        return {"validation_loss": functional.cross_entropy(scores, labels), "accuracy": right}
