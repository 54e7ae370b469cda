"""What a PyTorchTrial works with (Trainer spec, section 3)."""

from __future__ import annotations

import logging
import pathlib
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from determined import core
from determined._training.information import TrainingPlace, TrialInformation
from determined._training.settings import Settings
from determined.errors import InvalidExperimentException
from determined.pytorch import _models
from determined.pytorch._data import TorchData, to_device
from determined.pytorch._experimental import PyTorchExperimentalContext
from determined.pytorch._lr_scheduler import LRScheduler
from determined.pytorch._reducing import _PyTorchReducerContext
from determined.pytorch._stepping import Clip, Stepping
from determined.pytorch._tensorboard import EventFiles

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

logger = logging.getLogger("determined.pytorch")


class PyTorchTrialContext(TrialInformation, TrainingPlace, _PyTorchReducerContext):
    """Wraps models, optimizers, schedulers and reducers, steps them, and knows where training is."""

    def __init__(
        self,
        core_context: core.Context,
        settings: Settings,
        device: torch.device,
        *,
        aggregation_frequency: int = 1,
        average_aggregated_gradients: bool = True,
        steps_completed: int = 0,
        replicated: bool = False,
        enable_tensorboard_logging: bool = True,
    ) -> None:
        """`replicated`: several ranks train the same model."""
        TrialInformation.__init__(self, settings, steps_completed)
        _PyTorchReducerContext.__init__(self)
        self._core = core_context
        self._replicated = replicated
        self._stepping = Stepping(aggregation_frequency, average_aggregated_gradients)
        self._epoch_len = None
        self._averaging: dict[int, bool] = {}
        self._warned_types: set[type] = set()
        self._events = EventFiles(core_context.train.get_tensorboard_path(), enable_tensorboard_logging)
        self._scaler: Any = None
        self._torch_profiler: Any = None
        self.distributed = core_context.distributed
        self.device = device
        self.models: list[nn.Module] = self._stepping.models
        self.optimizers: list[torch.optim.Optimizer] = []
        self.lr_schedulers: list[LRScheduler] = []
        self.profiler: Any = None
        self.experimental = PyTorchExperimentalContext(self)
        self._on_cluster = False

    # -- wrapping

    def wrap_model(self, model: nn.Module) -> nn.Module:
        """Move a model to the device and train it on all ranks alike; returns the model to use."""
        model = model.to(self.device)
        if self._stepping.automatic and self.device.type == "cuda":
            _models.autocast_forward(model, self.device.type)
        if self._replicated:
            model = _models.replicate(model, self.device)
        self.models.append(model)
        return model

    def wrap_optimizer(
        self,
        optimizer: torch.optim.Optimizer,
        backward_passes_per_step: int = 1,
        fp16_compression: bool | None = None,
        average_aggregated_gradients: bool | None = None,
    ) -> torch.optim.Optimizer:
        """Register an optimizer. `backward_passes_per_step` and `fp16_compression` are Horovod's."""
        if backward_passes_per_step < 1:
            raise InvalidExperimentException(
                f"backward_passes_per_step must be at least 1, not {backward_passes_per_step}"
            )
        if average_aggregated_gradients is not None:
            self._averaging[id(optimizer)] = average_aggregated_gradients
        self.optimizers.append(optimizer)
        return optimizer

    def wrap_lr_scheduler(
        self, lr_scheduler: Any, step_mode: LRScheduler.StepMode, frequency: int = 1
    ) -> Any:
        """Have the loop step a scheduler; returns the scheduler itself."""
        wrapped = LRScheduler(lr_scheduler, step_mode, frequency)
        plateau = isinstance(lr_scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
        if plateau and step_mode is not LRScheduler.StepMode.MANUAL_STEP:
            raise InvalidExperimentException("ReduceLROnPlateau needs a metric: use StepMode.MANUAL_STEP")
        if not any(lr_scheduler.optimizer is one for one in self.optimizers):
            raise InvalidExperimentException(
                "the scheduler's optimizer was not wrapped: call wrap_optimizer() before wrap_lr_scheduler()"
            )
        self.lr_schedulers.append(wrapped)
        return lr_scheduler

    def autocast_forward_pass(self, to_wrap: nn.Module) -> nn.Module:
        """Have a model's forward pass run in mixed precision, for scripts that scale gradients themselves."""
        _models.autocast_forward(to_wrap, self.device.type)
        return to_wrap

    def wrap_scaler(self, scaler: Any) -> Any:
        """Keep a gradient scaler of the user's in checkpoints; before `wrap_model`, once."""
        self._use_scaler(scaler)
        return scaler

    def _use_scaler(self, scaler: Any) -> None:
        if self.models:
            raise InvalidExperimentException("a gradient scaler must come before wrap_model()")
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
        """Apex is not supported: torch's own mixed precision does the same. Nothing unless `enabled`."""
        if not enabled:
            return models, optimizers
        raise InvalidExperimentException(
            "configure_apex_amp() needs Apex, which is not supported: use context.experimental.use_amp()"
        )

    # -- the training step

    def backward(
        self,
        loss: torch.Tensor,
        gradient: torch.Tensor | None = None,
        retain_graph: bool = False,
        create_graph: bool = False,
    ) -> None:
        """Compute gradients of a loss, in the right precision and synchronised when due."""
        self._stepping.backward(loss, gradient, retain_graph, create_graph)

    def step_optimizer(
        self,
        optimizer: torch.optim.Optimizer,
        clip_grads: Clip | None = None,
        auto_zero_grads: bool = True,
        scaler: Any = None,
    ) -> None:
        """Step when enough batches were aggregated; `clip_grads` gets the optimizer's parameters."""
        average = self._averaging.get(id(optimizer), self._stepping.average)
        self._stepping.step(optimizer, clip_grads, auto_zero_grads, scaler, average)

    # -- information

    @property
    def _batch_index(self) -> int:
        return self._stepping.batch_idx

    def to_device(self, data: TorchData) -> Any:
        """A batch on the device; what cannot move stays, with one warning for its type."""
        return to_device(data, self.device, self._warned_types)

    # -- TensorBoard and profiling

    def get_tensorboard_path(self) -> pathlib.Path:
        """Where event files belong."""
        return self._events.path

    def get_tensorboard_writer(self) -> SummaryWriter:
        """The one writer of this process."""
        return self._events.writer()

    def set_enable_tensorboard_logging(self, enable_tensorboard_logging: bool) -> None:
        """Whether metrics are written as events, and event files stored."""
        self._events.enabled = enable_tensorboard_logging

    def get_enable_tensorboard_logging(self) -> bool:
        """Whether metrics are written as events, and event files stored."""
        return self._events.enabled

    def set_profiler(self, *args: Any, **kwargs: Any) -> None:
        """Trace batches with `torch.profiler.profile`, which takes these arguments."""
        self._torch_profiler = torch.profiler.profile(
            *args,
            on_trace_ready=torch.profiler.tensorboard_trace_handler(str(self._events.path)),
            **kwargs,
        )
