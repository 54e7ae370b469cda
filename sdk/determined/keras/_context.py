"""The context that a TFKerasTrial uses."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple, TypeVar

import keras

from determined import core
from determined._legacy import TrialContext
from determined._training.information import TrainingPlace, TrialInformation
from determined._training.settings import Settings
from determined.errors import InvalidExperimentException
from determined.keras._data import sharded

logger = logging.getLogger("determined.keras")
_NOT_GIVEN: Any = object()

Model = TypeVar("Model")
Dataset = TypeVar("Dataset")


class FitOptions(NamedTuple):
    """The options that `configure_fit` sets."""

    verbose: bool = False
    class_weight: dict[int, float] | None = None
    workers: int = 1
    max_queue_size: int = 10
    shuffle: bool = True
    validation_steps: int | None = None


class TFKerasExperimentalContext:
    """Reached as `context.experimental`. Data set caching was removed, because `tf.data` has its own.

    Example:
        ```python
        dataset = self.context.wrap_dataset(make_dataset().cache())    # instead of caching here
        ```
    """

    def cache_train_dataset(self, *args: Any) -> Any:
        """Always fails: call `dataset.cache()` instead.

        Args:
            *args: Not used.

        Returns:
            Nothing: it always raises.

        Raises:
            InvalidExperimentException: Always.

        Example:
            ```python
            dataset = self.context.wrap_dataset(make_dataset().cache())    # instead
            ```
        """
        raise InvalidExperimentException("cache_train_dataset() is gone: call dataset.cache() of tf.data")

    def cache_validation_dataset(self, *args: Any) -> Any:
        """Always fails: call `dataset.cache()` instead.

        Args:
            *args: Not used.

        Returns:
            Nothing: it always raises.

        Raises:
            InvalidExperimentException: Always.

        Example:
            ```python
            dataset = self.context.wrap_dataset(make_dataset().cache())    # instead
            ```
        """
        raise InvalidExperimentException(
            "cache_validation_dataset() is gone: call dataset.cache() of tf.data"
        )


class TFKerasTrialContext(TrialInformation, TrainingPlace, TrialContext):
    """Wraps the model, its optimizers and data sets. Provides hyperparameters and training progress.

    Example:
        ```python
        def build_model(self):
            model = self.context.wrap_model(make_model(self.context.get_hparam("filters")))
            optimizer = self.context.wrap_optimizer(keras.optimizers.Adam(self.context.get_hparam("lr")))
            model.compile(optimizer, loss="mse")
            return model
        ```
    """

    def __init__(
        self,
        core_context: core.Context,
        settings: Settings,
        *,
        aggregation_frequency: int = 1,
        steps_completed: int = 0,
    ) -> None:
        """Constructed by the platform.

        Args:
            core_context: Reports metrics and stores checkpoints.
            settings: Hyperparameters, configuration and ids.
            aggregation_frequency: Number of batches whose gradients are averaged for one optimizer step.
            steps_completed: Number of batches trained before this process started.
        """
        TrialInformation.__init__(self, settings, steps_completed)
        self._core = core_context
        self._aggregation = aggregation_frequency
        self._fit = FitOptions()
        self._index = -1
        self.distributed = core_context.distributed
        self.experimental = TFKerasExperimentalContext()
        self.model: Any = None
        """The wrapped model; None before `wrap_model()`."""
        self.optimizers: list[Any] = []
        """In the order of wrapping."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> TFKerasTrialContext:
        """Return an off-cluster context, for trying parts of a trial in a notebook.

        Args:
            config: An experiment configuration. Hyperparameters that are not constant are sampled.

        Raises:
            ValueError: If the configuration is invalid. The message lists all errors.

        Example:
            ```python
            config = {"hyperparameters": {"global_batch_size": 32, "lr": 0.1}, "searcher": {...}}
            trial = DigitsTrial(keras.TFKerasTrialContext.from_config(config))
            ```
        """
        from determined.experimental import _test_run

        whole = _test_run.whole(config)
        hparams = _test_run.environment(whole).hparams
        return cls(core._dummy_init(), Settings(hparams, whole, 1))

    @property
    def _batch_index(self) -> int:
        return self._index

    def wrap_model(self, model: Model) -> Model:
        """Register the model to train. Call it once, in `build_model()`.

        Args:
            model: A `keras.Model`, compiled before or after.

        Returns:
            The same model.

        Raises:
            InvalidExperimentException: If a model was already wrapped.

        Example:
            ```python
            model = self.context.wrap_model(keras.Sequential([keras.layers.Dense(10)]))
            ```
        """
        if self.model is not None and self.model is not model:
            raise InvalidExperimentException("a trial has one model: wrap_model() was called before")
        self.model = model
        return model

    def wrap_optimizer(self, optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
        """Register an optimizer. With several slots its gradients are averaged over them.

        Args:
            optimizer: The optimizer to pass to `compile()`. If `optimizations.aggregation_frequency` is above
                1, it steps once per that many batches, with the mean of their gradients.

        Returns:
            The same optimizer.

        Raises:
            InvalidExperimentException: If it accumulates a different number of batches itself.

        Example:
            ```python
            optimizer = context.wrap_optimizer(keras.optimizers.Adam(context.get_hparam("lr")))
            model.compile(optimizer, loss="mse")
            ```
        """
        if self._aggregation > 1:
            own = optimizer.gradient_accumulation_steps
            if own not in (None, self._aggregation):
                raise InvalidExperimentException(
                    f"the optimizer has gradient_accumulation_steps={own}, the configuration "
                    f"aggregation_frequency={self._aggregation}: choose one of them"
                )
            optimizer.gradient_accumulation_steps = self._aggregation
        self.optimizers.append(optimizer)
        return optimizer

    def wrap_dataset(self, dataset: Dataset, shard_dataset: bool = True) -> Dataset:
        """Shard a `tf.data.Dataset` among the slots. Call it right after creating the data set.

        Args:
            dataset: The data set, before shuffling and batching.
            shard_dataset: False if it already holds only this slot's records, for example if it reads its own
                files.

        Returns:
            The data set of this slot's records.

        Example:
            ```python
            data = self.context.wrap_dataset(tf.data.Dataset.from_tensor_slices((x, y)))
            return data.shuffle(1000).batch(self.context.get_per_slot_batch_size())
            ```
        """
        shard: Dataset = sharded(dataset, self.distributed, shard_dataset)
        return shard

    def configure_fit(
        self,
        verbose: bool | None = None,
        class_weight: Any = _NOT_GIVEN,
        workers: int | None = None,
        use_multiprocessing: bool | None = None,
        max_queue_size: int | None = None,
        shuffle: bool | None = None,
        validation_steps: Any = _NOT_GIVEN,
    ) -> None:
        """Set options that `model.fit()` would take. Call it in `__init__`.

        Omitted options keep their values.

        Args:
            verbose: Log the metrics of each window (default: false).
            class_weight: Weight of the loss by class, as `{class index: weight}`.
            workers: Number of threads that load batches of a `PyDataset` ahead (default: 1).
            use_multiprocessing: Ignored with a warning: threads load the batches.
            max_queue_size: Number of batches to load ahead (default: 10).
            shuffle: Shuffle records (of arrays) or batches (of a `PyDataset`) differently in each epoch
                (default: true). Shuffle a `tf.data.Dataset` with its own `shuffle()`.
            validation_steps: Number of batches in a validation on each slot (default: None, all).

        Example:
            ```python
            def __init__(self, context):
                self.context = context
                context.configure_fit(verbose=True, class_weight={0: 1.0, 1: 5.0})
            ```
        """
        if use_multiprocessing:
            logger.warning("use_multiprocessing has no effect: batches are loaded by threads (workers)")
        options = {
            "verbose": verbose,
            "workers": workers,
            "max_queue_size": max_queue_size,
            "shuffle": shuffle,
        }
        chosen: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        others = {"class_weight": class_weight, "validation_steps": validation_steps}
        chosen |= {name: value for name, value in others.items() if value is not _NOT_GIVEN}
        self._fit = self._fit._replace(**chosen)
