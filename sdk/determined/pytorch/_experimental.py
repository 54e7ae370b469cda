"""Switches of a trial (Trainer spec, section 3.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from determined.pytorch._context import PyTorchTrialContext


class PyTorchExperimentalContext:
    """Switches of a trial: `context.experimental`. Use them in the `__init__` of the trial."""

    def __init__(self, parent: PyTorchTrialContext) -> None:
        self._parent = parent
        self._auto_to_device = True
        self._any_loader = False

    def disable_dataset_reproducibility_checks(self) -> None:
        """Accept a data loader that is no `determined.pytorch.DataLoader`, and use it as it is.

        It is begun again whenever it ends, but neither shared out among ranks nor continued at the right
        batch after a pause: that is up to the script.
        """
        self._any_loader = True

    def disable_auto_to_device(self) -> None:
        """Leave batches where the loader put them; the script moves them, for example with
        `context.to_device()`.
        """
        self._auto_to_device = False

    def use_amp(self) -> None:
        """Train in mixed precision (`torch.autocast` and a gradient scaler) without a further change to the
        script.

        On a CPU it has no effect. Call it before the first `wrap_model()`.

        Raises:
            InvalidExperimentException: A model was wrapped before, or there is a gradient scaler already.
        """
        on_gpu = self._parent.device.type == "cuda"
        self._parent._automate_scaling(torch.amp.GradScaler(self._parent.device.type, enabled=on_gpu))
