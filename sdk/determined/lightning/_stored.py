"""Lightning's checkpoints in the storage of a trial."""

from __future__ import annotations

import pathlib
import shutil

import lightning.pytorch as pl
import torch

from determined import core
from determined._training.rank_checkpoints import RankCheckpoints

NAME = "lightning.ckpt"
FOLDER = "determined-lightning"
"""Relative to the working directory, which all ranks of a node share."""


class Stored:
    """The checkpoint downloaded at the start, and those stored during training."""

    def __init__(self, core_context: core.Context, trial_id: int, latest: str | None) -> None:
        """Download the checkpoint `latest`, on every rank."""
        self._context = core_context
        self._checkpoints = RankCheckpoints(core_context, trial_id)
        self._at = -1
        self.resume: pathlib.Path | None = None
        """The trial's own checkpoint to resume from."""
        self._weights: pathlib.Path | None = None
        """Another trial's checkpoint: its weights are used, but its step count is not."""
        if latest is not None:
            self._fetch(latest)

    def _fetch(self, uuid: str) -> None:
        folder = pathlib.Path(FOLDER) / uuid
        self._context.checkpoint.download(uuid, folder)
        if self._checkpoints.is_own(uuid):
            self.resume = folder / NAME
        else:
            self._weights = folder / NAME

    def begin(self, module: pl.LightningModule) -> None:
        """Load the weights of another trial's checkpoint, if there is one."""
        if self._weights is not None:
            # Read only tensors: other pickled content could run code.
            weights = torch.load(self._weights, map_location="cpu", weights_only=True)
            module.load_state_dict(weights["state_dict"])

    def store(self, trainer: pl.Trainer, batches: int) -> None:
        """Let Lightning write a checkpoint and store it, once per number of batches. Call on every rank."""
        if self._at == batches:
            return
        self._at = batches
        folder = pathlib.Path(FOLDER) / f"batches-{batches}"
        # Called by all ranks, as strategies that shard a model need it.
        trainer.save_checkpoint(folder / NAME, weights_only=False)
        self._checkpoints.store(folder, batches, framework="lightning")
        if self._checkpoints.stores:
            # It is stored: a copy per checkpoint would fill the disk of the host.
            shutil.rmtree(folder)
