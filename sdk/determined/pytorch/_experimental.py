"""Switches of a trial (Trainer spec, section 3.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from determined.pytorch._context import PyTorchTrialContext


class PyTorchExperimentalContext:
    """Reached as `context.experimental`."""

    def __init__(self, parent: PyTorchTrialContext) -> None:
        self._parent = parent
        self._auto_to_device = True
        self._any_loader = False

    def disable_dataset_reproducibility_checks(self) -> None:
        """Take any data loader as it is: not repeated, not shared out, not continued where it was."""
        self._any_loader = True

    def disable_auto_to_device(self) -> None:
        """Leave batches where the loader put them."""
        self._auto_to_device = False

    def use_amp(self) -> None:
        """Train in mixed precision, without a further change; before any `wrap_model`."""
        on_gpu = self._parent.device.type == "cuda"
        self._parent._automate_scaling(torch.amp.GradScaler(self._parent.device.type, enabled=on_gpu))
