"""Options of a trial (Trainer spec, section 3.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from determined.pytorch._context import PyTorchTrialContext


class PyTorchExperimentalContext:
    """Options of a trial: `context.experimental`. Use them in the trial's `__init__`.

    Example:
        ```python
        def __init__(self, context):
            context.experimental.use_amp()
            self.model = context.wrap_model(Net())
        ```
    """

    def __init__(self, parent: PyTorchTrialContext) -> None:
        self._parent = parent
        self._auto_to_device = True
        self._any_loader = False

    def disable_dataset_reproducibility_checks(self) -> None:
        """Accept a data loader that is not a `determined.pytorch.DataLoader`, and use it unchanged.

        It is restarted whenever it ends, but it is neither sharded among ranks nor continued at the right
        batch after a pause. The script must take care of that.

        Example:
            ```python
            def __init__(self, context):
                context.experimental.disable_dataset_reproducibility_checks()

            def build_training_data_loader(self):
                return torch.utils.data.DataLoader(self.stream, batch_size=32)
            ```
        """
        self._any_loader = True

    def disable_auto_to_device(self) -> None:
        """Do not move batches to the device.

        The script moves them, for example with `context.to_device()`.

        Example:
            ```python
            def __init__(self, context):
                context.experimental.disable_auto_to_device()

            def train_batch(self, batch, epoch_idx, batch_idx):
                images = self.context.to_device(batch["images"])    # the other parts stay on the host
            ```
        """
        self._auto_to_device = False

    def use_amp(self) -> None:
        """Train in mixed precision (`torch.autocast` and a gradient scaler) without changing the script.

        It has no effect on a CPU. Call it before the first `wrap_model()`.

        Raises:
            InvalidExperimentException: If a model was already wrapped, or there already is a gradient scaler.

        Example:
            ```python
            def __init__(self, context):
                context.experimental.use_amp()
                self.model = context.wrap_model(Net())
            ```
        """
        # On a CPU, the same script trains in full precision.
        on_gpu = self._parent.device.type == "cuda"
        self._parent._automate_scaling(torch.amp.GradScaler(self._parent.device.type, enabled=on_gpu))
