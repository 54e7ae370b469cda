"""Mixed precision in the context of a PyTorchTrial (Trainer spec, section 3.4)."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import nn

from determined.errors import InvalidExperimentException
from determined.pytorch import _models, _wrappable
from determined.pytorch._stepping import Stepping

Module = TypeVar("Module", bound=nn.Module)
Scaler = TypeVar("Scaler")


class MixedPrecision:
    """Gradient scalers, and models whose forward pass runs in mixed precision."""

    device: torch.device
    models: list[nn.Module]
    _stepping: Stepping
    _scaler: Any = None

    def autocast_forward_pass(self, to_wrap: Module) -> Module:
        """Run a model's forward pass under `torch.autocast` and return its outputs in full precision.

        For scripts that scale gradients themselves; `context.experimental.use_amp()` does everything.

        Args:
            to_wrap: The model. Its `forward` is replaced.

        Returns:
            The same model.

        Raises:
            TypeError: If it is no model.

        Example:
            ```python
            scaler = self.context.wrap_scaler(torch.amp.GradScaler())
            model = self.context.autocast_forward_pass(Net())
            self.model = self.context.wrap_model(model)
            ```
        """
        _wrappable.check_model("to_wrap", to_wrap)
        _models.autocast_forward(to_wrap, self.device.type)
        return to_wrap

    def wrap_scaler(self, scaler: Scaler) -> Scaler:
        """Store the state of your own gradient scaler in checkpoints. Your script scales, steps and updates.

        Args:
            scaler: A `torch.amp.GradScaler`. Also pass it to `step_optimizer()`.

        Returns:
            The same scaler.

        Raises:
            TypeError: If it is no gradient scaler.
            InvalidExperimentException: If a model was already wrapped, or there already is a scaler.

        Example:
            ```python
            self.scaler = self.context.wrap_scaler(torch.amp.GradScaler())
            ```
        """
        _wrappable.check_scaler("scaler", scaler)
        self._use_scaler(scaler)
        return scaler

    def _use_scaler(self, scaler: Any) -> None:
        if self.models:
            raise InvalidExperimentException("call wrap_scaler() before wrap_model()")
        if self._scaler is not None:
            raise InvalidExperimentException("there is a gradient scaler already: use one of use_amp() and "
                                             "wrap_scaler(), once")  # fmt: skip
        self._scaler = scaler

    def _automate_scaling(self, scaler: Any) -> None:
        self._use_scaler(scaler)
        self._stepping.scaler, self._stepping.automatic = scaler, True

    def configure_apex_amp(
        self,
        models: Any,
        optimizers: Any,
        enabled: bool = True,
        opt_level: str = "O1",
        cast_model_type: Any = None,
        patch_torch_functions: bool | None = None,
        keep_batchnorm_fp32: Any = None,
        master_weights: bool | None = None,
        loss_scale: Any = None,
        cast_model_outputs: Any = None,
        num_losses: int = 1,
        verbosity: int = 1,
        min_loss_scale: float | None = None,
        max_loss_scale: float = 2.0**24,
    ) -> Any:
        """Always fails if enabled: Apex is not supported.

        `context.experimental.use_amp()` trains in mixed precision with torch's own means.

        Args:
            models: Returned unchanged if `enabled` is false.
            optimizers: Returned unchanged if `enabled` is false.
            enabled: False to do nothing.
            opt_level: Ignored Apex option.
            cast_model_type: Ignored Apex option.
            patch_torch_functions: Ignored Apex option.
            keep_batchnorm_fp32: Ignored Apex option.
            master_weights: Ignored Apex option.
            loss_scale: Ignored Apex option.
            cast_model_outputs: Ignored Apex option.
            num_losses: Ignored Apex option.
            verbosity: Ignored Apex option.
            min_loss_scale: Ignored Apex option.
            max_loss_scale: Ignored Apex option.

        Returns:
            `(models, optimizers)` if `enabled` is false.

        Raises:
            InvalidExperimentException: If `enabled` is true.

        Example:
            ```python
            self.context.experimental.use_amp()    # instead of configure_apex_amp(), before wrap_model()
            ```
        """
        if not enabled:
            return models, optimizers
        raise InvalidExperimentException(
            "configure_apex_amp() needs Apex, which is not supported: use context.experimental.use_amp()"
        )
