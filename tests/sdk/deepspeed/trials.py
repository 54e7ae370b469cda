"""A small DeepSpeed trial and what two ranks do with it: `trials.py FUNCTION FOLDER [ARGUMENT...]`.

Each rank leaves a JSON file. Started by test_training.py with torch's variables.
"""

import json
import os
import pathlib
import sys

import deepspeed
import torch
from torch import nn

from determined import pytorch
from determined._training.plan import Plan
from determined._training.units import Batch
from determined.pytorch.deepspeed import DeepSpeedTrial, overwrite_deepspeed_config
from determined.pytorch.deepspeed._entry import train_here

CONFIG = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 2,
    "optimizer": {"type": "Adam", "torch_adam": True, "params": {"lr": 0.05}},
    "zero_optimization": {"stage": 0},
}
TOTAL = 7


class Pairs(torch.utils.data.Dataset):
    """Record i is (i, i) / 10."""

    def __len__(self):
        return 24

    def __getitem__(self, index):
        return torch.tensor([index / 10]), torch.tensor([index / 10])


class Seen(pytorch.PyTorchCallback):
    """Keeps what it was told."""

    def __init__(self):
        self.uuids, self.folders, self.windows, self.validations, self.epochs = [], [], [], [], []

    def on_checkpoint_write_end(self, checkpoint_dir):
        self.folders.append(checkpoint_dir)

    def on_checkpoint_upload_end(self, uuid):
        self.uuids.append(uuid)

    def on_training_workload_end(self, avg_metrics, batch_metrics):
        self.windows.append((avg_metrics["loss"], len(batch_metrics)))

    def on_training_epoch_start(self, epoch_idx):
        self.epochs.append(epoch_idx)

    def on_validation_end(self, metrics):
        self.validations.append(metrics)


class Trial(DeepSpeedTrial):
    """y = w x + b with dropout on the way."""

    stop = None

    def __init__(self, context):
        self.context = context
        config = overwrite_deepspeed_config(CONFIG, context.get_hparams().get("overwrite_deepspeed_args", {}))
        net = nn.Sequential(nn.Linear(1, 4), nn.Dropout(0.2), nn.Linear(4, 1))
        engine, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=config)
        self.engine = context.wrap_model_engine(engine)
        self.recorder, self.losses, self.records = Seen(), [], []
        self.count = context.wrap_reducer(len, "count", for_validation=False)

    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        x, y = self.context.to_device(next(dataloader_iter))
        loss = nn.functional.mse_loss(self.engine(x), y)
        self.engine.backward(loss)
        self.engine.step()
        self.losses.append(loss.item())
        self.records.append([round(feature * 10) for feature in x.flatten().tolist()])
        self.count.update(1)
        if batch_idx + 1 == self.stop:
            self.context.set_stop_requested(True)
        return {"loss": loss}

    def evaluate_batch(self, dataloader_iter, batch_idx):
        x, y = self.context.to_device(next(dataloader_iter))
        return {"validation_loss": nn.functional.mse_loss(self.engine(x), y), "first": x[0].item()}

    def build_training_data_loader(self):
        return pytorch.DataLoader(Pairs(), batch_size=2, shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Pairs(), batch_size=2)

    def build_callbacks(self):
        return {"seen": self.recorder}

    def outcome(self):
        names = ("uuids", "windows", "validations", "epochs")
        observations = {name: getattr(self.recorder, name) for name in names}
        weights = [p.tolist() for p in self.engine.module.parameters()]
        return {"losses": self.losses, "records": self.records, "weights": weights, **observations}


def train(kind=Trial, *, stop=None, stage=0, **options):
    class Stopping(kind):
        pass

    Stopping.stop = stop
    hparams = {"overwrite_deepspeed_args": {"zero_optimization": {"stage": stage}}}
    options = {
        "max_length": Batch(TOTAL),
        "reporting_period": Batch(1),
        "validation_period": Batch(4),
    } | options
    plan = Plan(**options, legacy=True)
    return train_here(Stopping, hparams, {"reproducibility": {"experiment_seed": 5}}, plan)


def whole():
    return train().outcome()


def resumed(stage):
    """(undisturbed, stopped after three batches, continued)."""
    stage = int(stage)
    runs = [train(stage=stage), train(stage=stage, stop=3)]
    torch.manual_seed(99)
    runs.append(train(stage=stage, latest_checkpoint=runs[1].recorder.uuids[-1]))
    return [trial.outcome() for trial in runs]


class Forgetful(Trial):
    """Trains one micro batch of two in a batch."""

    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        if self.losses:
            return {"loss": 0.0}
        return super().train_batch(dataloader_iter, epoch_idx, batch_idx)


def out_of_step():
    try:
        train(Forgetful)
    except AssertionError as error:
        return str(error)


class AllAtOnce(Trial):
    """Trains all micro batches of a batch by itself."""

    def __init__(self, context):
        super().__init__(context)
        context.disable_auto_grad_accumulation()

    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        for _ in range(self.context.num_micro_batches_per_slot):
            metrics = super().train_batch(dataloader_iter, epoch_idx, batch_idx)
        return metrics


def by_hand():
    return train(AllAtOnce, max_length=Batch(2)).outcome()


class Staged(DeepSpeedTrial):
    """Two stages of a pipeline, one on each rank."""

    def __init__(self, context):
        self.context = context
        layers = [nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1)]
        net = deepspeed.pipe.PipelineModule(layers, num_stages=2, loss_fn=nn.functional.mse_loss)
        engine, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=CONFIG)
        self.engine = context.wrap_model_engine(engine)
        self.recorder, self.had_data = Seen(), []

    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        self.had_data.append(dataloader_iter is not None)
        return {"loss": self.engine.train_batch(dataloader_iter)}

    def evaluate_batch(self, dataloader_iter, batch_idx):
        return {"validation_loss": self.engine.eval_batch(dataloader_iter)}

    def build_training_data_loader(self):
        return pytorch.DataLoader(Pairs(), batch_size=2)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Pairs(), batch_size=2)

    def build_callbacks(self):
        return {"seen": self.recorder}


def pipeline():
    trial = train(Staged, max_length=Batch(6))
    context = trial.context
    return {
        "pipeline": context.use_pipeline_parallel,
        "epoch": context._epoch_len,
        "windows": trial.recorder.windows,
        "validations": trial.recorder.validations,
        "reports": context._mpu.should_report_metrics,
        "had_data": trial.had_data,
    }


if __name__ == "__main__":
    name, folder, *arguments = sys.argv[1:]
    torch.set_num_threads(1)
    # Once for all runs of this process: DeepSpeed cannot join a second time.
    os.environ["DET_MANUAL_INIT_DISTRIBUTED"] = "1"
    deepspeed.init_distributed("gloo", auto_mpi_discovery=False)
    answer = globals()[name](*arguments)
    (pathlib.Path(folder) / f"{name}-{os.environ['RANK']}.json").write_text(json.dumps(answer))
