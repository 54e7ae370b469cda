"""How far a trial is, as its checkpoints hold it."""

from __future__ import annotations

import msgspec


class Counters(msgspec.Struct):
    """How far a trial is."""

    trial_id: int | None
    batches_trained: int = 0
    epochs_trained: int = 0
    last_val: int = 0
    """Steps of the last validation."""
    last_ckpt: int = 0
    step_id: int = 0
    """Windows so far."""
