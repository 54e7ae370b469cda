"""Mixed precision, gradient scalers and clipping in the training loop."""

import pytest
import torch

from determined import errors, pytorch
from determined.pytorch import Batch
from tests.sdk.pytorch.test_loop import train
from tests.sdk.pytorch.trials import OneVar


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_mixed_precision_is_full_precision():
    class Automatic(OneVar):
        def __init__(self, context):
            context.experimental.use_amp()
            super().__init__(context)

    class Scaling(OneVar):
        def __init__(self, context):
            self.scaler = context.wrap_scaler(torch.amp.GradScaler("cpu", enabled=False))
            super().__init__(context)

        def train_batch(self, batch, epoch_idx, batch_idx):
            loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
            self.context.backward(self.scaler.scale(loss))
            self.context.step_optimizer(self.optimizer, scaler=self.scaler)
            self.scaler.update()
            return loss

    assert train(Automatic).weight == train(Scaling).weight == train(OneVar).weight


def test_a_scaler_comes_once_and_first():
    with pytorch.init() as context:
        context.experimental.use_amp()
        with pytest.raises(errors.InvalidExperimentException, match="once"):
            context.wrap_scaler(torch.amp.GradScaler("cpu", enabled=False))


def test_clipping_sees_the_gradients_of_a_group():
    gradients = []

    class Clipping(OneVar):
        def train_batch(self, batch, epoch_idx, batch_idx):
            loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
            self.context.backward(loss)
            self.context.step_optimizer(
                self.optimizer, clip_grads=lambda parameters: gradients.append(parameters[0].grad.item())
            )
            return loss

    train(Clipping, aggregation=2, max_length=Batch(2))
    # Mean of -2 x x over 0, 1, 2, 3.
    assert gradients == [-7.0]


def test_gradients_kept_across_groups_are_refused():
    class Keeping(OneVar):
        def train_batch(self, batch, epoch_idx, batch_idx):
            self.context.step_optimizer(self.optimizer, auto_zero_grads=False)

    with pytest.raises(errors.InvalidExperimentException, match="auto_zero_grads"):
        train(Keeping, aggregation=2)
