"""Writes and reads the checkpoints of a DeepSpeedTrial; each rank handles its part."""

from __future__ import annotations

import logging
import pathlib
import pickle
from typing import Any

import msgspec
import torch

from determined._training.code import Code
from determined._training.counters import Counters
from determined.pytorch import _checkpoint
from determined.pytorch._callback import Callbacks
from determined.pytorch.deepspeed._context import DeepSpeedTrialContext
from determined.pytorch.deepspeed._trial import DeepSpeedTrial

logger = logging.getLogger("determined.pytorch.deepspeed")
COUNTERS = "workload_sequencer.pkl"


class Saving:
    """Manages the checkpoints of one run."""

    def __init__(
        self, trial: DeepSpeedTrial, context: DeepSpeedTrialContext, callbacks: Callbacks, local: bool
    ) -> None:
        self._trial = trial
        self._context = context
        self._callbacks = callbacks
        self._local = local
        self._core = context._core
        self._rank = context.distributed.rank
        self._code = Code(on_cluster=not local)

    def load(self, uuid: str) -> dict[str, Any]:
        """Restore everything from a checkpoint except its counters, and return the counters."""
        with self._core.checkpoint.restore_path(uuid) as path:
            counters = _read_counters(path)
            own = path / _own(self._rank)
            state = torch.load(own, map_location="cpu", weights_only=False) if own.exists() else {}
            self._callbacks.tell("on_checkpoint_load_start", state)
            self._trial.load(self._context, path)
        if state:
            self._callbacks.load_state_dict(state.get("callbacks") or {})
            _checkpoint.restore_rng_state(state["rng_state"])
        else:
            logger.warning("checkpoint %s has no state of rank %d: callbacks start fresh", uuid, self._rank)
        return counters

    def save(self, counters: Counters) -> None:
        """Write a checkpoint of this step. All ranks must call this."""
        steps = counters.batches_trained
        state = {"rng_state": _checkpoint.rng_state(), "callbacks": self._callbacks.state_dict()}
        if self._rank == 0:
            self._callbacks.tell("on_checkpoint_save_start", state)
        metadata = _checkpoint.metadata(steps)
        with self._core.checkpoint.store_path(metadata, shard=True) as (path, uuid):
            self._trial.save(self._context, path)
            torch.save(state, path / _own(self._rank))
            if self._rank == 0:
                values = {**msgspec.to_builtins(counters), "steps_completed": steps}
                (path / COUNTERS).write_bytes(pickle.dumps(values))
                self._code.copy_to(path)
                self._callbacks.tell("on_checkpoint_end", str(path))
            self._callbacks.tell("on_checkpoint_write_end", str(path))
        self._callbacks.tell("on_checkpoint_upload_end", uuid)


def _own(rank: int) -> str:
    return f"det_state_dict_rank{rank}.pth"


def _read_counters(folder: pathlib.Path) -> dict[str, Any]:
    path = folder / COUNTERS
    if not path.exists():
        raise RuntimeError(f"{folder} holds no checkpoint of a DeepSpeedTrial: {COUNTERS} is missing")
    counters: dict[str, Any] = pickle.loads(path.read_bytes())
    # Checkpoints of 0.25 name only `steps_completed`.
    counters.setdefault("batches_trained", counters.get("steps_completed", 0))
    return counters
