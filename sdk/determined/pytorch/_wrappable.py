"""Checks of what a context wraps. Objects count by what they can do, since other libraries have their own."""

from __future__ import annotations

from typing import Any

import torch

from determined import _arguments


def check_model(name: str, value: Any) -> None:
    """Raise TypeError for anything but a model."""
    _arguments.having(name, value, ("to", "parameters", "state_dict"), "a model (torch.nn.Module)")


def check_optimizer(name: str, value: Any) -> None:
    """Raise TypeError for anything but an optimizer."""
    _arguments.having(
        name, value, ("param_groups", "step", "state_dict"), "an optimizer (torch.optim.Optimizer)"
    )


def check_scheduler(name: str, value: Any) -> None:
    """Raise TypeError for anything but a scheduler that knows its optimizer."""
    _arguments.having(
        name, value, ("optimizer", "step", "state_dict"), "a scheduler of torch.optim.lr_scheduler"
    )


def check_scaler(name: str, value: Any) -> None:
    """Raise TypeError for anything but a gradient scaler."""
    _arguments.having(name, value, ("scale", "step", "update"), "a gradient scaler (torch.amp.GradScaler)")


def check_tensor(name: str, value: Any) -> None:
    """Raise TypeError for anything but a tensor."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(_arguments.wrong(name, "a tensor", value))
