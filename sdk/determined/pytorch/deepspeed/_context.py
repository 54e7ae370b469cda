"""The context that a DeepSpeedTrial uses."""

from __future__ import annotations

import logging
from typing import Any, TypeVar

import torch

from determined import core
from determined._legacy import TrialContext
from determined._training.information import TrainingPlace, TrialInformation
from determined._training.settings import Settings
from determined.errors import InternalException, InvalidExperimentException
from determined.pytorch._data import to_device
from determined.pytorch._reducing import _PyTorchReducerContext
from determined.pytorch._tensorboard import EventFiles, TensorBoardLogging
from determined.pytorch.deepspeed._mpu import ModelParallelUnit, make_data_parallel_mpu, make_deepspeed_mpu

logger = logging.getLogger("determined.pytorch.deepspeed")
Engine = TypeVar("Engine")


class DeepSpeedTrialContext(
    TrialInformation, TrainingPlace, TensorBoardLogging, _PyTorchReducerContext, TrialContext
):
    """Wraps engines and reducers. Provides hyperparameters and training progress.

    Example:
        ```python
        def __init__(self, context):
            self.context = context
            overrides = context.get_hparam("overwrite_deepspeed_args")
            config = overwrite_deepspeed_config("ds.json", overrides)
            engine, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=config)
            self.engine = context.wrap_model_engine(engine)
        ```
    """

    def __init__(
        self,
        core_context: core.Context,
        settings: Settings,
        device: torch.device,
        *,
        steps_completed: int = 0,
        enable_tensorboard_logging: bool = True,
    ) -> None:
        """Constructed by the platform.

        Args:
            core_context: Reports metrics and stores checkpoints.
            settings: Hyperparameters, configuration and ids.
            device: The device that batches are moved to.
            steps_completed: Number of batches trained before this process started.
            enable_tensorboard_logging: Whether metrics are written as TensorBoard events.
        """
        TrialInformation.__init__(self, settings, steps_completed)
        _PyTorchReducerContext.__init__(self)
        self._core = core_context
        self.distributed = core_context.distributed
        self.device = device
        self.models: list[Any] = []
        """The engines, in the order of wrapping."""
        self.profiler: Any = None
        self._events = EventFiles(core_context.train.get_tensorboard_path(), enable_tensorboard_logging)
        self._index = -1
        self._warned_types: set[type] = set()
        self._micro_batch_size: int | None = None
        self._micro_batches: int | None = None
        self._pipeline = False
        self._manual = False
        self._any_loader = False
        self._mpu = make_data_parallel_mpu(self.distributed)
        self._mpu_set = False

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> DeepSpeedTrialContext:
        """Return an off-cluster context, for trying parts of a trial in a notebook.

        Args:
            config: An experiment configuration. Hyperparameters that are not constant are sampled.

        Raises:
            ValueError: If the configuration is invalid. The message lists all errors.

        Example:
            ```python
            config = {"hyperparameters": {"deepspeed_config": "ds_config.json"}, "searcher": {...}}
            trial = DigitsTrial(DeepSpeedTrialContext.from_config(config))
            ```
        """
        from determined.experimental import _test_run

        whole = _test_run.whole(config)
        settings = Settings(_test_run.environment(whole).hparams, whole, 1)
        return cls(core._dummy_init(), settings, torch.device("cpu"))

    @property
    def _batch_index(self) -> int:
        return self._index

    # -- wrapping

    def wrap_model_engine(self, model: Engine) -> Engine:
        """Register an engine returned by `deepspeed.initialize()`.

        The first engine determines the size of micro batches and how many form a batch. A pipeline engine
        brings its own model-parallel unit.

        Args:
            model: The engine.

        Returns:
            The same engine, on its device.

        Example:
            ```python
            engine, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config="ds.json")
            self.engine = context.wrap_model_engine(engine)
            ```
        """
        from deepspeed.runtime.pipe.engine import PipelineEngine

        engine: Any = model
        size, count = engine.train_micro_batch_size_per_gpu(), engine.gradient_accumulation_steps()
        if self._micro_batch_size is None:
            self._micro_batch_size, self._micro_batches = size, count
        elif (size, count) != (self._micro_batch_size, self._micro_batches):
            logger.warning(
                "this engine trains %d micro batches of %d, the first one %d of %d: those of the first apply",
                *(count, size, self._micro_batches, self._micro_batch_size),
            )
        if isinstance(model, PipelineEngine):
            self._pipeline = True
            if not self._mpu_set:
                self._mpu = make_deepspeed_mpu(model.mpu)
        self.models.append(engine.to(self.device))
        return model

    def set_mpu(self, mpu: ModelParallelUnit) -> None:
        """Set how the model is divided over ranks, unless a pipeline engine divides it.

        Args:
            mpu: This rank's place. At least one rank must report metrics.

        Raises:
            InvalidExperimentException: If called before an engine is wrapped, or twice.

        Example:
            ```python
            self.engine = self.context.wrap_model_engine(engine)
            self.context.set_mpu(make_data_parallel_mpu(self.context.distributed))
            ```
        """
        if not self.models:
            raise InvalidExperimentException("call set_mpu() after wrap_model_engine()")
        if self._mpu_set:
            raise InvalidExperimentException("set_mpu() may be called once")
        if not any(self.distributed.allgather(mpu.should_report_metrics)):
            raise InvalidExperimentException("no rank reports metrics: set should_report_metrics on one")
        self._mpu, self._mpu_set = mpu, True

    def disable_auto_grad_accumulation(self) -> None:
        """Call `train_batch` once per batch. It must then train on all micro batches itself.

        Example:
            ```python
            def __init__(self, context):
                context.disable_auto_grad_accumulation()

            def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
                for _ in range(self.context.num_micro_batches_per_slot):
                    loss = self.train_micro_batch(next(dataloader_iter))
                return {"loss": loss}
            ```
        """
        self._manual = True

    def disable_dataset_reproducibility_checks(self) -> None:
        """Accept any data loader unchanged: it is not repeated, sharded or continued at the right batch.

        Example:
            ```python
            context.disable_dataset_reproducibility_checks()    # in __init__, before the loaders are built
            ```
        """
        self._any_loader = True

    # -- information

    @property
    def use_pipeline_parallel(self) -> bool:
        """Whether any engine is a pipeline engine.

        Example:
            ```python
            if not context.use_pipeline_parallel:    # a pipeline engine fetches its batches itself
                batch = next(dataloader_iter)
            ```
        """
        return self._pipeline

    @property
    def train_micro_batch_size_per_gpu(self) -> int:
        """Number of records in a micro batch on one slot.

        Raises InternalException before an engine is wrapped.

        Example:
            ```python
            loader = pytorch.DataLoader(dataset, batch_size=context.train_micro_batch_size_per_gpu)
            ```
        """
        if self._micro_batch_size is None:
            raise InternalException("micro batches are known once an engine is wrapped")
        return self._micro_batch_size

    @property
    def num_micro_batches_per_slot(self) -> int:
        """Number of micro batches in a batch on one slot.

        Raises InternalException before an engine is wrapped.

        Example:
            ```python
            records = context.num_micro_batches_per_slot * context.train_micro_batch_size_per_gpu
            ```
        """
        if self._micro_batches is None:
            raise InternalException("micro batches are known once an engine is wrapped")
        return self._micro_batches

    def to_device(self, data: Any) -> Any:
        """Return a batch moved to the device.

        Args:
            data: Tensors or arrays in arbitrarily nested dicts, lists and tuples. Other values are returned
                unchanged, with one warning per type.

        Returns:
            The same structure, with each tensor on the device.

        Example:
            ```python
            images, labels = self.context.to_device(next(dataloader_iter))
            ```
        """
        return to_device(data, self.device, self._warned_types)
