"""What a TFKerasTrial works with."""

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
    """What `configure_fit` chose."""

    verbose: bool = False
    class_weight: dict[int, float] | None = None
    workers: int = 1
    max_queue_size: int = 10
    shuffle: bool = True
    validation_steps: int | None = None


class TFKerasExperimentalContext:
    """Reached as `context.experimental`. Caches of data sets are gone: `tf.data` has its own."""

    def cache_train_dataset(self, *args: Any) -> Any:
        """Refuse: call `dataset.cache()`.

        Args:
            *args: Not used.

        Returns:
            Nothing: it always raises.

        Raises:
            InvalidExperimentException: Always.
        """
        raise InvalidExperimentException("cache_train_dataset() is gone: call dataset.cache() of tf.data")

    def cache_validation_dataset(self, *args: Any) -> Any:
        """Refuse: call `dataset.cache()`.

        Args:
            *args: Not used.

        Returns:
            Nothing: it always raises.

        Raises:
            InvalidExperimentException: Always.
        """
        raise InvalidExperimentException(
            "cache_validation_dataset() is gone: call dataset.cache() of tf.data"
        )


class TFKerasTrialContext(TrialInformation, TrainingPlace, TrialContext):
    """Wraps the model, its optimizers and data sets, and knows the hyperparameters and where training is."""

    def __init__(
        self,
        core_context: core.Context,
        settings: Settings,
        *,
        aggregation_frequency: int = 1,
        steps_completed: int = 0,
    ) -> None:
        """Made by the platform.

        Args:
            core_context: What reports and stores.
            settings: Hyperparameters, configuration and ids.
            aggregation_frequency: Batches whose gradients are averaged for one step of the optimizer.
            steps_completed: Batches trained before this process.
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
        """Return a context off cluster, for trying a trial's parts in a notebook.

        Args:
            config: An experiment configuration. Hyperparameters that are not constant are drawn.

        Raises:
            ValueError: The configuration is wrong; all its faults are named.
        """
        from determined.experimental import _test_run

        whole = _test_run.whole(config)
        hparams = _test_run.environment(whole).hparams
        return cls(core._dummy_init(), Settings(hparams, whole, 1))

    @property
    def _batch_index(self) -> int:
        return self._index

    def wrap_model(self, model: Model) -> Model:
        """Register the model that is trained; call it in `build_model()`, once.

        Args:
            model: A `keras.Model`, compiled before or after.

        Returns:
            The same model.

        Raises:
            InvalidExperimentException: There is a wrapped model already.
        """
        if self.model is not None and self.model is not model:
            raise InvalidExperimentException("a trial has one model: wrap_model() was called before")
        self.model = model
        return model

    def wrap_optimizer(self, optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
        """Register an optimizer: on several slots its gradients are averaged over them.

        Args:
            optimizer: What `compile()` gets afterwards. With `optimizations.aggregation_frequency` above 1 it
                steps once for so many batches, with the mean of their gradients.

        Returns:
            The same optimizer.

        Raises:
            InvalidExperimentException: It accumulates another number of batches by itself.
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
        """Share a `tf.data.Dataset` out among the slots; call it right after the data set is made.

        Args:
            dataset: The data set, before it is shuffled and cut into batches.
            shard_dataset: False if it holds this slot's records only, such as one that reads its own files.

        Returns:
            The data set of this slot's records.
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
        """Choose what `model.fit()` would be given; call it in `__init__`. What is left out stays as it is.

        Args:
            verbose: Log each window's metrics (default: false).
            class_weight: Weight of the loss by class, as `{class index: weight}`.
            workers: Threads that load batches of a `PyDataset` ahead (default: 1).
            use_multiprocessing: Has no effect but a warning: batches are loaded by threads.
            max_queue_size: Batches that are loaded ahead (default: 10).
            shuffle: Another order of records (of arrays) or batches (of a `PyDataset`) in each epoch
                (default: true). A `tf.data.Dataset` is shuffled by its own `shuffle()`.
            validation_steps: Batches of a validation on each slot (default: None, all).
        """
        if use_multiprocessing:
            logger.warning("use_multiprocessing has no effect: batches are loaded by threads (workers)")
        given = {
            "verbose": verbose,
            "workers": workers,
            "max_queue_size": max_queue_size,
            "shuffle": shuffle,
        }
        chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        others = {"class_weight": class_weight, "validation_steps": validation_steps}
        chosen |= {name: value for name, value in others.items() if value is not _NOT_GIVEN}
        self._fit = self._fit._replace(**chosen)
