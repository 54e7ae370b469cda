"""A small network for handwritten digits, trained by DeepSpeed as a DeepSpeedTrial."""

from pathlib import Path

import deepspeed
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

from determined import pytorch
from determined.pytorch.deepspeed import DeepSpeedTrial, DeepSpeedTrialContext, overwrite_deepspeed_config

TEST_IMAGES = 297


def digits(train):
    """Images (64,) with values from 0 to 1 and their labels: 1,500 for training and 297 for testing."""
    data = load_digits()
    order = np.random.RandomState(0).permutation(len(data.target))
    part = order[TEST_IMAGES:] if train else order[:TEST_IMAGES]
    images = torch.tensor(data.data[part] / 16, dtype=torch.float32)
    return TensorDataset(images, torch.tensor(data.target[part]))


class DigitsTrial(DeepSpeedTrial):
    """Model, data and metrics; DeepSpeed and the platform do the rest."""

    def __init__(self, context: DeepSpeedTrialContext) -> None:
        self.context = context
        # Several trials share this machine's cores.
        torch.set_num_threads(1)
        width = context.get_hparam("width")
        model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 10))
        config = overwrite_deepspeed_config(
            str(Path(__file__).with_name("ds_config.json")), context.get_hparam("overwrite_deepspeed_args")
        )
        engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
        self.engine = context.wrap_model_engine(engine)

    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        images, labels = self.context.to_device(next(dataloader_iter))
        loss = functional.cross_entropy(self.engine(images), labels)
        self.engine.backward(loss)
        self.engine.step()
        return {"loss": loss}

    def evaluate_batch(self, dataloader_iter, batch_idx):
        images, labels = self.context.to_device(next(dataloader_iter))
        scores = self.engine(images)
        right = (scores.argmax(1) == labels).float().mean()
        return {"validation_loss": functional.cross_entropy(scores, labels), "accuracy": right}

    def build_training_data_loader(self):
        size = self.context.train_micro_batch_size_per_gpu
        return pytorch.DataLoader(digits(train=True), batch_size=size, shuffle=True)

    def build_validation_data_loader(self):
        size = self.context.train_micro_batch_size_per_gpu
        return pytorch.DataLoader(digits(train=False), batch_size=size)
