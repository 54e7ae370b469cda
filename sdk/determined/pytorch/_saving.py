"""Writes and reads checkpoints, on all ranks (Trainer spec, sections 12 and 13)."""

from __future__ import annotations

import logging
import pathlib
from typing import Any

import torch

from determined._training.code import Code
from determined._training.counters import Counters
from determined._training.plan import Plan
from determined.pytorch import _checkpoint
from determined.pytorch._callback import Callbacks
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._trial import PyTorchTrial

logger = logging.getLogger("determined.pytorch")
RANK_AWARE = ("tfevents",)


class Saving:
    """Manages the checkpoints of one run."""

    def __init__(
        self,
        trial: PyTorchTrial,
        context: PyTorchTrialContext,
        callbacks: Callbacks,
        plan: Plan,
        local: bool,
    ) -> None:
        self._trial = trial
        self._context = context
        self._callbacks = callbacks
        self._plan = plan
        self._local = local
        self._core = context._core
        self._distributed = context.distributed
        self._code = Code(on_cluster=not local)
        self.seed = 0
        """Seed that determines the order of the training data."""

    # -- reading

    def steps_before(self) -> int:
        """Return the number of batches trained before, from the cluster or a local run's checkpoint."""
        if not self._local:
            return self._context._steps_completed
        if self._plan.latest_checkpoint is None:
            return 0
        with self._core.checkpoint.restore_path(self._plan.latest_checkpoint) as path:
            return int(_checkpoint.read_counters(path).get("batches_trained", 0))

    def load(self) -> _checkpoint.StoredCheckpoint | None:
        """Restore the latest checkpoint, except its counters, and return it if there is one."""
        # Read first: restoring the random generators changes the seed that torch reports.
        self.seed = self._first_seed()
        if self._plan.latest_checkpoint is None:
            return None
        with self._core.checkpoint.restore_path(self._plan.latest_checkpoint) as path:
            checkpoint = _checkpoint.read(path, self._context.device)
        self._callbacks.tell("on_checkpoint_load_start", checkpoint.state)
        _checkpoint.apply(self._context, checkpoint)
        self._callbacks.load_state_dict(checkpoint.state.get("callbacks") or {})
        return checkpoint

    def _first_seed(self) -> int:
        """Return the trial's seed on a cluster, otherwise the seed that the chief set in torch."""
        seed = self._context._settings.trial_seed
        if seed is None:
            seed = self._distributed.broadcast(torch.initial_seed())
        return int(seed)

    # -- writing

    def save(self, counters: Counters, *, alone: bool = False) -> None:
        """Write a checkpoint of this step. All ranks must call this, unless the chief writes `alone`."""
        counters.last_ckpt = counters.batches_trained
        mine = {
            "rng_state": _checkpoint.rng_state(),
            "gradients": _checkpoint.pending_gradients(self._context),
        }
        if alone and self._distributed.rank != 0:
            return
        # Random states and pending gradients differ between ranks; everything else is as on the chief.
        each = [mine] if alone or self._distributed.size == 1 else self._distributed.gather(mine)
        uuid = self._write(counters, each) if each is not None else None
        if not alone:
            # The chief sends it after the checkpoint is stored, so no rank trains on before.
            uuid = self._distributed.broadcast(uuid)
        self._callbacks.tell("on_checkpoint_upload_end", uuid)

    def _write(self, counters: Counters, each: list[dict[str, Any]]) -> str:
        state = _checkpoint.state_of(self._context, self._callbacks.state_dict())
        resume = {
            "seed": self.seed,
            "rng_states": [state_of_rank["rng_state"] for state_of_rank in each],
            "gradients": [state_of_rank["gradients"] for state_of_rank in each],
        }
        self._callbacks.tell("on_checkpoint_save_start", state)
        metadata = _checkpoint.metadata(counters.batches_trained)
        with self._core.checkpoint.store_path(metadata) as (path, uuid):
            _checkpoint.write(path, state, counters, resume, self._load_data())
            self._code.copy_to(path)
            self._callbacks.tell("on_checkpoint_end", str(path))
            self._callbacks.tell("on_checkpoint_write_end", str(path))
        return uuid

    def _load_data(self) -> dict[str, Any]:
        """Return the data that `load_trial_from_checkpoint_path` needs."""
        settings, kind = self._context._settings, type(self._trial)
        is_complete = settings.exp_conf is not None and settings.hparams is not None
        load_data = {
            "trial_type": "PyTorchTrial",
            "experiment_config": settings.exp_conf if is_complete else None,
            "hparams": settings.hparams if is_complete else None,
            "trial_cls_spec": f"{kind.__module__}:{kind.__qualname__}",
        }
        return load_data if self._plan.legacy else load_data | {"is_trainer": True}

    # -- TensorBoard

    def upload_events(self) -> None:
        """Upload all files of the chief, and from other ranks all files that are not event files."""
        chief = self._distributed.rank == 0

        def wanted(path: pathlib.Path) -> bool:
            return chief or "tfevents" not in path.name

        self._core.train.upload_tensorboard_files(wanted)
