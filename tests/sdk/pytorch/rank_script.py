"""What two processes do together, one function per test; each rank leaves a JSON file.

Started by test_ranks.py with torch's variables: `rank_script.py FUNCTION FOLDER [ARGUMENT...]`.
"""

import contextlib
import itertools
import json
import os
import pathlib
import sys

import numpy as np
import torch
from torch import nn

from determined import core, pytorch
from determined.pytorch import Batch, Epoch, Reducer
from tests.sdk.pytorch.trials import Ones, OneVar, Random

TOTAL = 14


class Hearing(pytorch.PyTorchCallback):
    """Keeps what it was told."""

    def __init__(self):
        self.uuids, self.saved, self.windows, self.validations = [], 0, [], []

    def on_checkpoint_save_start(self, checkpoint):
        self.saved += 1

    def on_checkpoint_upload_end(self, uuid):
        self.uuids.append(uuid)

    def on_training_workload_end(self, avg_metrics, batch_metrics):
        self.windows.append(({k: plain(v) for k, v in avg_metrics.items()}, len(batch_metrics)))

    def on_validation_end(self, metrics):
        self.validations.append({name: plain(value) for name, value in metrics.items()})


def plain(value):
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


@contextlib.contextmanager
def opened(**options):
    group = core.DistributedContext.from_torch_distributed()
    with pytorch.init(distributed=group, enable_tensorboard_logging=False, **options) as context:
        yield context


def train(kind, *, arguments=None, aggregation=1, **fit):
    class Heard(kind):
        def build_callbacks(self):
            self.hearing = Hearing()
            return {"hearing": self.hearing}

    with opened(aggregation_frequency=aggregation) as context:
        trial = Heard(context, **(arguments or {}))
        pytorch.Trainer(trial, context).fit(**{"max_length": Batch(4), "checkpoint_policy": "none"} | fit)
    return trial


# -- gradients


def gradients():
    """Weight by (aggregation, batches of a rank)."""
    weights = {}
    for aggregation, batches in ((1, 1), (2, 2), (2, 4), (4, 3)):
        trial = train(OneVar, aggregation=aggregation, max_length=Batch(batches))
        weights[f"{aggregation} {batches}"] = next(trial.model.module.parameters()).item()
    return weights


class Named(nn.Linear):
    def name(self):
        return f"{self.in_features} to {self.out_features}"


def attributes():
    with opened(hparams={"global_batch_size": 9}) as context:
        model = context.wrap_model(Named(2, 3))
        frozen = nn.Linear(1, 1).requires_grad_(False)
        return {
            "replicated": isinstance(model, torch.nn.parallel.DistributedDataParallel),
            "name": model.name(),
            "frozen": context.wrap_model(frozen) is frozen,
            "sizes": [context.get_per_slot_batch_size(), context.get_global_batch_size()],
        }


# -- data


def shares():
    """Ten records in batches of 2: five batches, three of them on rank 0."""
    trial = train(OneVar, arguments={"records": 10}, max_length=Epoch(2))
    return {"epochs": [e for e, *_ in trial.batches], "first": [first for *_, first in trial.batches]}


def shuffled():
    """All ranks share one order, although their own chance differs (D16)."""

    class Drawing(Random):
        def train_batch(self, batch, epoch_idx, batch_idx):
            if self.context.distributed.rank:
                torch.rand(1)
            return super().train_batch(batch, epoch_idx, batch_idx)

    torch.manual_seed(40 + int(os.environ["RANK"]))
    return [records for _, records in train(Drawing, max_length=Epoch(2)).batches]


# -- metrics


class Measuring(OneVar):
    def __init__(self, context):
        super().__init__(context, records=8)
        self.order = context.wrap_reducer(list, "order")
        self.count = context.wrap_reducer(len, "count", for_validation=False)

    def train_batch(self, batch, epoch_idx, batch_idx):
        super().train_batch(batch, epoch_idx, batch_idx)
        rank, first = self.context.distributed.rank, batch[0][0].item()
        self.order.update(first)
        self.count.update(first)
        return {"rank": rank, "odd": None if rank else 5.0, "never": None, "text": "a"}

    def evaluate_batch(self, batch):
        first = batch[0][0].item()
        self.order.update(first)
        return dict.fromkeys(("mean", "sum", "max", "min"), torch.tensor(first))

    def evaluation_reducer(self):
        return {"mean": Reducer.AVG, "sum": Reducer.SUM, "max": Reducer.MAX, "min": Reducer.MIN}

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Ones(10), 2)


def metrics():
    hearing = train(Measuring, max_length=Batch(2)).hearing
    return {"windows": hearing.windows, "validations": hearing.validations}


class Whole(OneVar):
    evaluate_batch = pytorch.PyTorchTrial.evaluate_batch

    def evaluate_full_dataset(self, data_loader):
        return {"records": sum(len(x) for x, _ in data_loader), "rank": self.context.distributed.rank}


class OneBatch(OneVar):
    def build_validation_data_loader(self):
        return pytorch.DataLoader(Ones(2), 2)


class NoBatch(OneVar):
    def build_validation_data_loader(self):
        return pytorch.DataLoader(Ones(0), 2)


def validation():
    validations = {
        "whole": train(Whole).hearing.validations,
        "one": train(OneBatch, max_length=Batch(1)).hearing.validations,
    }
    try:
        train(NoBatch)
    except RuntimeError as error:
        validations["none"] = str(error)
    return validations


# -- leaving and coming back


def checkpoints():
    hearing = train(OneVar, checkpoint_period=Batch(2)).hearing
    return {"uuids": hearing.uuids, "saved": hearing.saved}


class Stopping(Random):
    def __init__(self, context, stop=None, by=1, workers=0):
        super().__init__(context, workers=workers)
        self.stop, self.by = stop, by

    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx + 1 == self.stop and self.context.distributed.rank == self.by:
            self.context.set_stop_requested(True)
        return super().train_batch(batch, epoch_idx, batch_idx)


def random_run(stop=None, checkpoint=None, workers=0, seed=3):
    rank = int(os.environ["RANK"])
    # One beginning for the weights and the order, then another chance on each rank.
    torch.manual_seed(seed)
    np.random.seed(seed + rank)

    class Own(Stopping):
        def __init__(self, context, **arguments):
            super().__init__(context, **arguments)
            torch.rand(rank + 1)

    return train(
        Own,
        arguments={"stop": stop, "workers": workers},
        aggregation=2,
        max_length=Batch(TOTAL),
        reporting_period=Batch(1),
        validation_period=Batch(5),
        latest_checkpoint=checkpoint,
    )


def outcome(*trials):
    return {
        "seen": [batch for trial in trials for batch in trial.batches],
        "losses": [loss for trial in trials for loss in trial.losses],
        "weights": trials[-1].weights.tolist(),
        "windows": [window for trial in trials for window in trial.hearing.windows],
        "metrics": trials[-1].hearing.validations[-1],
    }


def resume(*stops):
    """Names of the ways in which a run differs that was stopped and resumed; none, if all is well."""
    whole, differ = outcome(random_run()), []
    for stop, workers in itertools.product(map(int, stops), (0, 2)):
        first = random_run(stop, workers=workers)
        assert len(first.batches) == stop
        second = random_run(checkpoint=first.hearing.uuids[-1], workers=workers, seed=99)
        resumed = outcome(first, second)
        differ += [f"{name} of {stop} with {workers}" for name in whole if resumed[name] != whole[name]]
    return {"differ": differ, "losses": whole["losses"]}


def handed_on():
    """A checkpoint of two ranks, to be loaded by one; and the weights it holds."""
    trial = random_run(stop=4)
    return {"uuid": trial.hearing.uuids[-1], "weights": trial.weights.tolist()}


def taken_over():
    """A checkpoint of one rank, as weights of both."""
    uuid = pathlib.Path("single").read_text()
    with opened() as context:
        trial = Random(context)
        pytorch.Trainer(trial, context).fit(max_length=Batch(5), latest_checkpoint=uuid)
    return {"weights": trial.weights.tolist(), "seen": trial.batches}


if __name__ == "__main__":
    name, folder, *arguments = sys.argv[1:]
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    answer = globals()[name](*arguments)
    place = pathlib.Path(folder) / f"{name}-{os.environ['RANK']}.json"
    place.write_text(json.dumps(answer))
    torch.distributed.destroy_process_group()
