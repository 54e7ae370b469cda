"""What needs an accelerator: mixed precision, pinned memory, nccl (Trainer spec, section 3.4)."""

import pytest
import torch
from torch import nn

from determined import pytorch
from determined.pytorch import Batch
from tests.fixtures.ranks import new_interpreter, run_ranks
from tests.sdk.pytorch.trials import Ones, OneVar

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
needs_two = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are no two CUDA devices")
GROWTH = 4
"""Good steps after which the scale is doubled."""
SHARE = 0.25
"""Of the output that is the loss: the first scale, 65536, is itself more than half precision holds."""


class Scaled(OneVar):
    """Losses as a test wants them, under our own scaler or the script's."""

    def __init__(self, context, factors=(), automatic=True):
        self.context, self.factors, self.automatic = context, factors, automatic
        scaler = torch.amp.GradScaler("cuda", growth_interval=GROWTH)
        if automatic:
            context.experimental.use_amp()
            context._scaler.set_growth_interval(GROWTH)
        else:
            self.scaler = context.wrap_scaler(scaler)
        self.model = context.wrap_model(nn.Linear(1, 1, bias=False))
        nn.init.constant_(next(self.model.parameters()), 1.0)
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), 1e-4))
        self.records, self.batch = 64, 2
        self.scales, self.weights, self.kinds = [], [], []

    def train_batch(self, batch, epoch_idx, batch_idx):
        x = torch.full((1, 1), self.factors[batch_idx], device=self.context.device)
        if self.automatic:
            out = self.model(x)
            self.kinds.append(out.dtype)
            self.context.backward(SHARE * out.sum())
            self.context.step_optimizer(self.optimizer, clip_grads=self.clip)
        else:
            with torch.autocast("cuda"):
                loss = self.scaler.scale(SHARE * self.model(x).sum())
            self.context.backward(loss)
            self.context.step_optimizer(self.optimizer, scaler=self.scaler)
            self.scaler.update()
        self.weights.append(self.weight)
        self.scales.append(self.context._scaler.get_scale())
        return {"loss": 0.0}

    def clip(self, parameters):
        # Unscaled by now: never above what the batch makes it.
        self.clipped = max(p.grad.abs().max().item() for p in parameters)

    def evaluate_batch(self, batch):
        return {"validation_loss": 0.0}


@pytest.mark.gpu
@needs_gpu
def test_autocast_gives_full_precision():
    trial = scaled([1.0, 1.0], True)
    assert trial.kinds == [torch.float32] * 2
    assert trial.clipped == pytest.approx(SHARE, rel=1e-2)
    assert trial.device.type == "cuda"


def scaled(factors, automatic):
    with pytorch.init(enable_tensorboard_logging=False) as context:
        trial = Scaled(context, factors, automatic)
        pytorch.Trainer(trial, context).fit(max_length=Batch(len(factors)))
    trial.device = context.device
    return trial


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("automatic", [True, False])
def test_a_loss_that_overflows_lowers_the_scale_and_keeps_the_weight(automatic):
    trial = scaled([40000.0, 0.5], automatic)
    # The scaler of `use_amp` learns after the batch, that of the script in it.
    first = trial.scales[1] if automatic else trial.scales[0]
    assert first == 65536 / 2
    assert trial.weights[0] == 1.0
    assert trial.weights[1] < 1.0


@pytest.mark.gpu
@needs_gpu
def test_good_steps_raise_the_scale():
    trial = scaled([0.25] * (GROWTH + 1), False)
    assert trial.scales == [65536.0] * (GROWTH - 1) + [131072.0] * 2


@pytest.mark.gpu
@needs_gpu
def test_pinned_memory_arrives():
    class Pinned(OneVar):
        def build_training_data_loader(self):
            return pytorch.DataLoader(Ones(8), 2, pin_memory=True, num_workers=1)

        def train_batch(self, batch, epoch_idx, batch_idx):
            assert batch[0].is_cuda
            return super().train_batch(batch, epoch_idx, batch_idx)

    with pytorch.init(enable_tensorboard_logging=False) as context:
        trial = Pinned(context)
        pytorch.Trainer(trial, context).fit(max_length=Batch(6))
    assert [first for *_, first in trial.batches] == [0, 2, 4, 6, 0, 2]


@pytest.mark.gpu
@needs_gpu
def test_a_run_on_a_gpu_resumes_exactly():
    uuids = []

    class Dropping(OneVar):
        def __init__(self, context, stop=None):
            self.context, self.stop = context, stop
            self.model = context.wrap_model(nn.Sequential(nn.Linear(1, 8), nn.Dropout(0.5), nn.Linear(8, 1)))
            self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), 1e-4))
            self.records, self.batch, self.batches = 16, 2, []

        def train_batch(self, batch, epoch_idx, batch_idx):
            self.context.set_stop_requested(batch_idx + 1 == self.stop)
            return super().train_batch(batch, epoch_idx, batch_idx)

        def build_callbacks(self):
            class Keep(pytorch.PyTorchCallback):
                def on_checkpoint_upload_end(self, uuid):
                    uuids.append(uuid)

            return {"keep": Keep()}

    def run(stop=None, checkpoint=None):
        torch.manual_seed(5)
        with pytorch.init(enable_tensorboard_logging=False) as context:
            trial = Dropping(context, stop)
            pytorch.Trainer(trial, context).fit(
                max_length=Batch(6), reporting_period=Batch(1), latest_checkpoint=checkpoint
            )
        return [p.detach().cpu() for p in trial.model.parameters()]

    whole = run()
    run(stop=3)
    torch.cuda.manual_seed(9)
    resumed = run(checkpoint=uuids[-1])
    assert all(torch.equal(parameter, other) for parameter, other in zip(whole, resumed, strict=True))


NCCL = """
import os, torch
from determined import core, pytorch
from tests.sdk.pytorch.trials import OneVar
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
torch.distributed.init_process_group("nccl")
group = core.DistributedContext.from_torch_distributed()
with pytorch.init(distributed=group, enable_tensorboard_logging=False) as context:
    trial = OneVar(context)
    pytorch.Trainer(trial, context).fit(max_length=pytorch.Batch(1))
    print("weight", round(trial.weight, 6))
torch.distributed.destroy_process_group()
"""


@pytest.mark.gpu
@needs_two
@pytest.mark.live
def test_two_devices_train_one_model():
    outputs = run_ranks(new_interpreter, ["-c", NCCL])
    # Records 0 to 3, two on each device: as one batch of four.
    assert ["weight 0.007" in output for output in outputs] == [True, True]
