"""How far a trial is, as its checkpoints hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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

    def resumed(self, stored: Mapping[str, Any]) -> Counters | None:
        """Return the counters of a checkpoint; None for another trial's, from which only the weights count.

        Args:
            stored: Counters by name, as a checkpoint holds them. Names that are unknown here are ignored.
        """
        if stored.get("trial_id") != self.trial_id:
            return None
        known = {name: stored[name] for name in self.__struct_fields__ if name in stored}
        return msgspec.structs.replace(self, **known)
