"""Lightning's checkpoints in the storage of a trial."""

from __future__ import annotations

import pathlib
import shutil

import lightning.pytorch as pl
import torch

from determined import core

NAME = "lightning.ckpt"
FOLDER = "determined-lightning"
"""In the working directory, which all ranks of a node share."""


class Stored:
    """What was fetched to begin with, and what is stored on the way."""

    def __init__(self, core_context: core.Context, trial_id: int, latest: str | None) -> None:
        """Fetch the checkpoint `latest`, on every rank."""
        self._context = core_context
        self._trial_id = trial_id
        self._at = -1
        self.resume: pathlib.Path | None = None
        """The trial's own checkpoint, to go on from."""
        self._weights: pathlib.Path | None = None
        """Another trial's: a beginning, whose weights count and whose steps do not."""
        if latest is not None:
            self._fetch(latest)

    def _fetch(self, uuid: str) -> None:
        folder = pathlib.Path(FOLDER) / uuid
        self._context.checkpoint.download(uuid, folder)
        distributed = self._context.distributed
        metadata = self._context.checkpoint.get_metadata(uuid) if distributed.rank == 0 else None
        of = distributed.broadcast(metadata.get("trial_id") if metadata is not None else None)
        if of == self._trial_id:
            self.resume = folder / NAME
        else:
            self._weights = folder / NAME

    def begin(self, module: pl.LightningModule) -> None:
        """Take over the weights of another trial, where that is what there is."""
        if self._weights is not None:
            # All that is read is tensors: what else a checkpoint holds could be a program.
            found = torch.load(self._weights, map_location="cpu", weights_only=True)
            module.load_state_dict(found["state_dict"])

    def store(self, trainer: pl.Trainer, batches: int) -> None:
        """Have Lightning write a checkpoint, and store it; once for a number of batches. On every rank."""
        if self._at == batches:
            return
        self._at = batches
        folder, distributed = pathlib.Path(FOLDER) / f"batches-{batches}", self._context.distributed
        trainer.save_checkpoint(folder / NAME)
        # Every rank has written its part; one of each node stores them.
        distributed.allgather(None)
        stores = distributed.local_rank == 0
        folder.mkdir(parents=True, exist_ok=True)
        metadata = {"steps_completed": batches, "trial_id": self._trial_id, "framework": "lightning"}
        self._context.checkpoint.upload(folder if stores else None, metadata, shard=True)
        if stores:
            shutil.rmtree(folder)
