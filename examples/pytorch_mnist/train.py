"""The same trial as a script: `python3 train.py`, `torchrun --nproc-per-node 2 train.py`, or on a cluster."""

import contextlib
import logging
import os

import torch

import determined as det
from determined import pytorch

from model_def import MNistTrial

LOCAL_HPARAMS = {"global_batch_size": 64, "learning_rate": 0.5, "n_filters": 8, "dropout": 0.25}


@contextlib.contextmanager
def torchrun_ranks():
    """The ranks that torchrun started on this machine; a cluster sets up its own."""
    if "TORCHELASTIC_RUN_ID" not in os.environ or det.get_cluster_info() is not None:
        yield None
        return
    os.environ["USE_TORCH_DISTRIBUTED"] = "true"
    torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield det.core.DistributedContext.from_torch_distributed()
    finally:
        torch.distributed.destroy_process_group()


def main():
    info = det.get_cluster_info()
    hparams = info.trial.hparams if info else LOCAL_HPARAMS
    if info is None:
        torch.manual_seed(1)
    with torchrun_ranks() as distributed, pytorch.init(hparams=hparams, distributed=distributed) as context:
        trainer = pytorch.Trainer(MNistTrial(context), context)
        trainer.fit(
            # On a cluster the searcher's max_length counts instead.
            max_length=None if info else pytorch.Epoch(2),
            validation_period=pytorch.Epoch(1),
            reporting_period=pytorch.Batch(10),
            checkpoint_policy="best" if info else "all",
            latest_checkpoint=info.latest_checkpoint if info else os.environ.get("CHECKPOINT"),
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    main()
