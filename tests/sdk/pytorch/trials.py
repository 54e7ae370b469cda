"""Small trials that tests train."""

import numpy as np
import torch
from torch import nn

from determined import pytorch


class Ones(torch.utils.data.Dataset):
    """Record i is (i, i)."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return torch.tensor([float(index)]), torch.tensor([float(index)])


class OneVar(pytorch.PyTorchTrial):
    """y = w x, w = 0, mean squared error, plain gradient descent."""

    def __init__(self, context, *, records=64, rate=0.001, batch=2, average=None):
        self.context = context
        model = nn.Linear(1, 1, bias=False)
        model.weight.data.fill_(0.0)
        self.model = context.wrap_model(model)
        optimizer = torch.optim.SGD(self.model.parameters(), rate)
        self.optimizer = context.wrap_optimizer(optimizer, average_aggregated_gradients=average)
        self.records, self.batch = records, batch
        self.batches = []

    @property
    def weight(self):
        return next(self.model.parameters()).item()

    def train_batch(self, batch, epoch_idx, batch_idx):
        x, y = batch
        self.batches.append((epoch_idx, batch_idx, x[0].item()))
        loss = nn.functional.mse_loss(self.model(x), y)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss, "first": x[0].item()}

    def evaluate_batch(self, batch):
        x, y = batch
        return {"validation_loss": nn.functional.mse_loss(self.model(x), y)}

    def build_training_data_loader(self):
        return pytorch.DataLoader(Ones(self.records), self.batch)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Ones(8), 2)


class Random(OneVar):
    """Shuffled data, dropout, momentum and a scheduler: everything that a resumed run can get wrong."""

    def __init__(self, context, *, workers=0, records=24):
        self.context = context
        self.workers, self.records = workers, records
        self.model = context.wrap_model(
            nn.Sequential(nn.Linear(1, 8), nn.Dropout(0.5), nn.Tanh(), nn.Linear(8, 1))
        )
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), 0.01, momentum=0.9))
        scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.9)
        self.scheduler = context.wrap_lr_scheduler(scheduler, pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH)
        self.batches, self.losses = [], []

    def train_batch(self, batch, epoch_idx, batch_idx):
        x, y = batch
        x = x + 0.01 * float(np.random.rand())
        loss = nn.functional.mse_loss(self.model(x), y)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        self.losses.append(loss.item())
        self.batches.append((batch_idx, batch[0].flatten().tolist()))
        return loss

    def build_training_data_loader(self):
        return pytorch.DataLoader(Ones(self.records), 2, shuffle=True, num_workers=self.workers)

    @property
    def weights(self):
        return torch.cat([p.detach().flatten() for p in self.model.parameters()])
