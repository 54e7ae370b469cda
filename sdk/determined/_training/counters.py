"""Training progress of a trial, as stored in its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Counters(msgspec.Struct):
    """Training progress of a trial."""

    trial_id: int | None
    batches_trained: int = 0
    epochs_trained: int = 0
    last_val: int = 0
    """Steps of the last validation."""
    last_ckpt: int = 0
    step_id: int = 0
    """Number of windows so far."""

    def resumed(self, stored: Mapping[str, Any]) -> Counters | None:
        """Return the counters of a checkpoint, or None if it belongs to another trial.

        Of another trial's checkpoint, only the weights are used.

        Args:
            stored: Counters by name, as stored in a checkpoint. Unknown names are ignored.
        """
        if stored.get("trial_id") != self.trial_id:
            return None
        # A checkpoint of another release may lack fields, or have ones that this release does not know.
        counters = {name: stored[name] for name in self.__struct_fields__ if name in stored}
        return msgspec.structs.replace(self, **counters)
