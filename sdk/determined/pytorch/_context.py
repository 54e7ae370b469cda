"""The context that a PyTorchTrial uses (Trainer spec, section 3)."""

from __future__ import annotations

import logging
from typing import Any, TypeVar

import torch
from torch import nn

from determined import _arguments, core
from determined._training.information import TrainingPlace, TrialInformation
from determined._training.settings import Settings
from determined.errors import InvalidExperimentException
from determined.pytorch import _models, _wrappable
from determined.pytorch._data import TorchData, to_device
from determined.pytorch._experimental import PyTorchExperimentalContext
from determined.pytorch._lr_scheduler import LRScheduler
from determined.pytorch._mixed_precision import MixedPrecision
from determined.pytorch._reducing import _PyTorchReducerContext
from determined.pytorch._stepping import Clip, Stepping
from determined.pytorch._tensorboard import EventFiles, TensorBoardLogging

logger = logging.getLogger("determined.pytorch")

Optimizer = TypeVar("Optimizer", bound=torch.optim.Optimizer)
Scheduler = TypeVar("Scheduler")


class PyTorchTrialContext(
    TrialInformation, TrainingPlace, TensorBoardLogging, MixedPrecision, _PyTorchReducerContext
):
    """Wraps and steps models, optimizers, schedulers and reducers. Provides hyperparameters and progress.

    Attributes:
        distributed: The ranks of the trial, as a `determined.core.DistributedContext`.
        device: The device this rank trains on: its GPU, or else the CPU.
        models: Wrapped models, in the order of wrapping.
        optimizers: Wrapped optimizers, in the order of wrapping.
        lr_schedulers: Wrapped schedulers as `LRScheduler`, in the order of wrapping.
        experimental: Options: `use_amp()`, `disable_auto_to_device()` and
            `disable_dataset_reproducibility_checks()`.

    Example:
        ```python
        with pytorch.init(hparams={"lr": 0.1, "global_batch_size": 32}) as context:
            trial = MnistTrial(context)
            pytorch.Trainer(trial, context).fit(max_length=pytorch.Epoch(1))
        ```
    """

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
        """Constructed by `pytorch.init()`.

        Args:
            core_context: Reports metrics and stores checkpoints.
            settings: Hyperparameters, configuration and ids.
            device: The device this rank trains on.
            aggregation_frequency: Number of batches whose gradients are accumulated for one optimizer step.
            average_aggregated_gradients: Whether accumulated gradients are divided by the number of batches.
            steps_completed: Number of batches trained before this process started.
            replicated: Whether several ranks train the same model.
            enable_tensorboard_logging: Whether metrics are written as TensorBoard events.
        """
        TrialInformation.__init__(self, settings, steps_completed)
        _PyTorchReducerContext.__init__(self)
        self._core = core_context
        self._replicated = replicated
        self._stepping = Stepping(aggregation_frequency, average_aggregated_gradients)
        self._epoch_len = None
        self._averaging: dict[int, bool] = {}
        self._warned_types: set[type] = set()
        self._events = EventFiles(core_context.train.get_tensorboard_path(), enable_tensorboard_logging)
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
        """Move a model to the device. With several ranks, average its gradients over them.

        Call it in `__init__`, before creating an optimizer from the model's parameters. The weights become
        part of
        checkpoints.

        Args:
            model: The model with its initial weights.

        Returns:
            The model to use from now on: the same, or a `DistributedDataParallel` around it.

        Raises:
            TypeError: If it is no model.

        Example:
            ```python
            self.model = context.wrap_model(torch.nn.Linear(64, 10))
            self.optimizer = context.wrap_optimizer(torch.optim.Adam(self.model.parameters()))
            ```
        """
        _wrappable.check_model("model", model)
        # Before DDP, which takes parameters where they are, and before the optimizer is made, which refers
        # to them.
        model = model.to(self.device)
        if self._stepping.automatic and self.device.type == "cuda":
            _models.autocast_forward(model, self.device.type)
        if self._replicated:
            model = _models.replicate(model, self.device)
        self.models.append(model)
        return model

    def wrap_optimizer(
        self,
        optimizer: Optimizer,
        backward_passes_per_step: int = 1,
        fp16_compression: bool | None = None,
        average_aggregated_gradients: bool | None = None,
    ) -> Optimizer:
        """Register an optimizer. Its state becomes part of checkpoints.

        Args:
            optimizer: An optimizer of parameters of wrapped models.
            backward_passes_per_step: A Horovod option without effect. Use `aggregation_frequency` to
                accumulate gradients over batches.
            fp16_compression: A Horovod option without effect.
            average_aggregated_gradients: Whether gradients accumulated over several batches are divided by
                their number. Default: the setting of the context, which is true unless configured.

        Returns:
            The same optimizer.

        Raises:
            TypeError: If it is no optimizer.
            InvalidExperimentException: If `backward_passes_per_step` is below 1.

        Example:
            ```python
            optimizer = torch.optim.Adam(self.model.parameters(), lr=context.get_hparam("lr"))
            self.optimizer = context.wrap_optimizer(optimizer)
            ```
        """
        _wrappable.check_optimizer("optimizer", optimizer)
        if not isinstance(backward_passes_per_step, int) or backward_passes_per_step < 1:
            raise InvalidExperimentException(
                f"backward_passes_per_step must be at least 1, not {backward_passes_per_step!r}"
            )
        if average_aggregated_gradients is not None:
            self._averaging[id(optimizer)] = average_aggregated_gradients
        self.optimizers.append(optimizer)
        return optimizer

    def wrap_lr_scheduler(
        self, lr_scheduler: Scheduler, step_mode: LRScheduler.StepMode, frequency: int = 1
    ) -> Scheduler:
        """Let the training loop step a learning rate scheduler. Its state becomes part of checkpoints.

        Args:
            lr_scheduler: A scheduler of a wrapped optimizer.
            step_mode: When to step: every batch, every epoch, every optimizer step, or manually.
            frequency: Step only on every this many of these.

        Returns:
            The same scheduler.

        Raises:
            TypeError: If it is no scheduler.
            InvalidExperimentException: If its optimizer was not wrapped, or if it is a `ReduceLROnPlateau`,
                which needs a metric, and `step_mode` is not `MANUAL_STEP`.

        Example:
            ```python
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.9)
            context.wrap_lr_scheduler(scheduler, pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH)
            ```
        """
        _wrappable.check_scheduler("lr_scheduler", lr_scheduler)
        wrapped = LRScheduler(lr_scheduler, step_mode, frequency)
        plateau = isinstance(lr_scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
        if plateau and step_mode is not LRScheduler.StepMode.MANUAL_STEP:
            raise InvalidExperimentException("ReduceLROnPlateau needs a metric: use StepMode.MANUAL_STEP")
        # A scheduler of an optimizer that is never stepped would change nothing, without a word.
        if not any(wrapped._scheduler.optimizer is optimizer for optimizer in self.optimizers):
            raise InvalidExperimentException(
                "the scheduler's optimizer was not wrapped: call wrap_optimizer() before wrap_lr_scheduler()"
            )
        self.lr_schedulers.append(wrapped)
        return lr_scheduler

    # -- the training step

    def backward(
        self,
        loss: torch.Tensor,
        gradient: torch.Tensor | None = None,
        retain_graph: bool = False,
        create_graph: bool = False,
    ) -> None:
        """Compute the gradients of a loss.

        Scales them for mixed precision and averages them over ranks if needed.

        With gradient aggregation, ranks exchange gradients only on the last batch of a group.

        Args:
            loss: A tensor with one element, usually the mean over the records of the batch.
            gradient: As for `torch.Tensor.backward`, for a loss with several elements; has the shape of
                `loss`.
            retain_graph: As for `torch.Tensor.backward`: keep the graph for a second call.
            create_graph: As for `torch.Tensor.backward`: also build a graph of the derivative.

        Raises:
            TypeError: If the loss is no tensor.

        Example:
            ```python
            self.context.backward(loss)
            self.context.step_optimizer(self.optimizer)
            ```
        """
        _wrappable.check_tensor("loss", loss)
        if gradient is not None:
            _wrappable.check_tensor("gradient", gradient)
        self._stepping.backward(loss, gradient, retain_graph, create_graph)

    def step_optimizer(
        self,
        optimizer: torch.optim.Optimizer,
        clip_grads: Clip | None = None,
        auto_zero_grads: bool = True,
        scaler: Any = None,
    ) -> None:
        """Step an optimizer once enough batches are accumulated. Call it once per batch and optimizer.

        Args:
            optimizer: A wrapped optimizer.
            clip_grads: Called with the list of the optimizer's parameters right before the step, after
                gradients are averaged and unscaled.
            auto_zero_grads: Whether to zero the gradients after the step.
            scaler: Your own gradient scaler to step with. Required with `wrap_scaler()`.

        Raises:
            TypeError: If the optimizer, the function or the scaler is none.
            InvalidExperimentException: If `auto_zero_grads` is false while gradients are accumulated over
                batches.

        Example:
            ```python
            context.backward(loss)
            context.step_optimizer(
                optimizer, clip_grads=lambda params: torch.nn.utils.clip_grad_norm_(params, max_norm=1.0)
            )
            ```
        """
        _wrappable.check_optimizer("optimizer", optimizer)
        _arguments.function("clip_grads", clip_grads, "the list of parameters")
        if scaler is not None:
            _wrappable.check_scaler("scaler", scaler)
        average = self._averaging.get(id(optimizer), self._stepping.average)
        self._stepping.step(optimizer, clip_grads, auto_zero_grads, scaler, average)

    # -- information

    @property
    def _batch_index(self) -> int:
        return self._stepping.batch_idx

    def to_device(self, data: TorchData) -> Any:
        """Return a batch moved to this rank's device. Data loader batches are moved automatically.

        Args:
            data: A tensor, a NumPy array, or arbitrarily nested lists, tuples and dicts of them. Other values
                are returned unchanged, with one warning per type.

        Returns:
            The same structure, with each tensor on the device.

        Example:
            ```python
            weights = self.context.to_device(torch.tensor([0.3, 0.7]))
            ```
        """
        return to_device(data, self.device, self._warned_types)

    # -- profiling

    def set_profiler(self, *args: Any, **kwargs: Any) -> None:
        """Trace batches with `torch.profiler.profile`. The traces are stored with the trial's event files.

        Args:
            *args: Passed to `torch.profiler.profile`.
            **kwargs: Passed to `torch.profiler.profile`, except `on_trace_ready`, which is set to write to
                the event file directory.

        Example:
            ```python
            context.set_profiler(
                activities=[torch.profiler.ProfilerActivity.CPU],
                schedule=torch.profiler.schedule(wait=1, warmup=1, active=3),
            )
            ```
        """
        self._torch_profiler = torch.profiler.profile(
            *args,
            on_trace_ready=torch.profiler.tensorboard_trace_handler(str(self._events.path)),
            **kwargs,
        )
