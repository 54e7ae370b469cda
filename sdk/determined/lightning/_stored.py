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
"""In the working directory, which all ranks of a node share."""


class Stored:
    """What was fetched to begin with, and what is stored on the way."""

    def __init__(self, core_context: core.Context, trial_id: int, latest: str | None) -> None:
        """Fetch the checkpoint `latest`, on every rank."""
        self._context = core_context
        self._checkpoints = RankCheckpoints(core_context, trial_id)
        self._at = -1
        self.resume: pathlib.Path | None = None
        """The trial's own checkpoint, to resume from."""
        self._weights: pathlib.Path | None = None
        """Another trial's: a beginning, whose weights count and whose steps do not."""
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
        """Take over the weights of another trial, where that is what there is."""
        if self._weights is not None:
            # All that is read is tensors: what else a checkpoint holds could be a program.
            weights = torch.load(self._weights, map_location="cpu", weights_only=True)
            module.load_state_dict(weights["state_dict"])

    def store(self, trainer: pl.Trainer, batches: int) -> None:
        """Have Lightning write a checkpoint, and store it; once for a number of batches. On every rank."""
        if self._at == batches:
            return
        self._at = batches
        folder = pathlib.Path(FOLDER) / f"batches-{batches}"
        trainer.save_checkpoint(folder / NAME)
        self._checkpoints.store(folder, batches, framework="lightning")
        if self._checkpoints.stores:
            shutil.rmtree(folder)
