"""When a checkpoint is written and read, on all ranks (Trainer spec, sections 12 and 13)."""

from __future__ import annotations

import logging
import pathlib
from typing import Any

import msgspec
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
    """The checkpoints of one run."""

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
        self._seed = 0

    # -- reading

    def steps_before(self) -> int:
        """Batches that were trained before: as the cluster says, or the checkpoint of a local run."""
        if not self._local:
            return self._context._steps_completed
        if self._plan.latest_checkpoint is None:
            return 0
        with self._core.checkpoint.restore_path(self._plan.latest_checkpoint) as path:
            return int(_checkpoint.read_counters(path).get("batches_trained", 0))

    def load(self, fresh: Counters) -> tuple[Counters, int]:
        """Restore the latest checkpoint, if there is one; returns the counters and the seed of the order."""
        self._seed = self._first_seed()
        if self._plan.latest_checkpoint is None:
            return fresh, self._seed
        with self._core.checkpoint.restore_path(self._plan.latest_checkpoint) as path:
            found = _checkpoint.read(path, self._context.device)
        self._callbacks.tell("on_checkpoint_load_start", found.state)
        _checkpoint.apply(self._context, found)
        self._callbacks.load_state_dict(found.state.get("callbacks") or {})
        same = found.counters.get("trial_id") == fresh.trial_id
        if not same:
            return fresh, self._seed
        if self._local:
            self._seed = found.resume.get("seed", self._seed)
        known = {name: found.counters[name] for name in fresh.__struct_fields__ if name in found.counters}
        counters = msgspec.structs.replace(fresh, **known)
        if not self._local:
            counters.batches_trained = self._context._steps_completed
            last = self._core.train._get_last_validation()
            if last is not None:
                counters.last_val = last
        return counters, self._seed

    def _first_seed(self) -> int:
        """On a cluster that of the trial; else the chief's, which `torch.manual_seed` sets."""
        seed = self._context._settings.trial_seed
        if seed is None:
            seed = self._distributed.broadcast(torch.initial_seed())
        return int(seed)

    # -- writing

    def save(self, counters: Counters, *, alone: bool = False) -> None:
        """Write a checkpoint of this step; all ranks call, unless the chief is `alone`."""
        counters.last_ckpt = counters.batches_trained
        mine = {
            "rng_state": _checkpoint.rng_state(),
            "gradients": _checkpoint.pending_gradients(self._context),
        }
        if alone and self._distributed.rank != 0:
            return
        each = [mine] if alone or self._distributed.size == 1 else self._distributed.gather(mine)
        uuid = self._write(counters, each) if each is not None else None
        if not alone:
            uuid = self._distributed.broadcast(uuid)
            self._callbacks.tell("on_checkpoint_upload_end", uuid)

    def _write(self, counters: Counters, each: list[dict[str, Any]]) -> str:
        state = _checkpoint.state_of(self._context, self._callbacks.state_dict())
        resume = {
            "seed": self._seed,
            "rng_states": [one["rng_state"] for one in each],
            "gradients": [one["gradients"] for one in each],
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
        """What `load_trial_from_checkpoint_path` needs."""
        settings, kind = self._context._settings, type(self._trial)
        known = settings.exp_conf is not None and settings.hparams is not None
        found = {
            "trial_type": "PyTorchTrial",
            "experiment_config": settings.exp_conf if known else None,
            "hparams": settings.hparams if known else None,
            "trial_cls_spec": f"{kind.__module__}:{kind.__qualname__}",
        }
        return found if self._plan.legacy else found | {"is_trainer": True}

    # -- TensorBoard

    def upload_events(self) -> None:
        """The chief's files whole; of other ranks what is no event file."""
        chief = self._distributed.rank == 0

        def wanted(path: pathlib.Path) -> bool:
            return chief or "tfevents" not in path.name

        self._core.train.upload_tensorboard_files(wanted)
