"""Trains a TFKerasTrial by `train_on_batch`, so that training can be paused and resumed at any batch."""

from __future__ import annotations

import itertools
import logging
import math
import warnings
from collections.abc import Iterator
from typing import Any

import keras

from determined._training.code import Code
from determined._training.loop import BoundaryLoop
from determined._training.plan import Plan
from determined._training.reducer import mean_of_numbers
from determined.errors import InvalidExperimentException
from determined.keras import _checkpoint, _ranks, callbacks
from determined.keras._context import TFKerasTrialContext
from determined.keras._data import Reading, adapt, records
from determined.keras._trial import TFKerasTrial

logger = logging.getLogger("determined.keras")


class _Callbacks(keras.callbacks.CallbackList):  # type: ignore[misc]
    """The callbacks of a trial.

    The loop reports the start and end of validations, with metrics of all ranks.
    """

    # Keras calls these itself in `evaluate`, once per rank and without the metrics of the other ranks.
    # The loop calls `tell_test_begin` and `tell_test_end` instead.
    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        pass

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        pass

    def tell_test_begin(self) -> None:
        super().on_test_begin({})

    def tell_test_end(self, metrics: dict[str, Any]) -> None:
        super().on_test_end(metrics)

    def tell(self, method: str, *arguments: Any) -> None:
        """Call an event method that Keras does not define."""
        for callback in self.callbacks:
            if hasattr(callback, method):
                getattr(callback, method)(*arguments)


class KerasLoop(BoundaryLoop):
    """Trains one TFKerasTrial once."""

    def __init__(self, trial: TFKerasTrial, context: TFKerasTrialContext, plan: Plan, local: bool) -> None:
        super().__init__(context._core, plan, context._settings, local)
        self._trial = trial
        self._context = context
        self._code = Code(on_cluster=not local)
        self._window: list[dict[str, Any]] = []
        self._begun = False

    # -- before the first batch

    def _prepare(self) -> None:
        context, options = self._context, self._context._fit
        seed = context._settings.trial_seed or 0
        sizes = context._settings._sizes
        reading = Reading(
            sizes[0] if sizes else None, options.shuffle, options.workers, options.max_queue_size
        )
        training = self._trial.build_training_data_loader()
        self._data = adapt(training, reading, seed, "build_training_data_loader")
        validation = self._trial.build_validation_data_loader()
        plain = reading._replace(shuffle=False)
        self._validation_data = adapt(validation, plain, seed, "build_validation_data_loader")
        # The chief's value: ranks with shares of different lengths would see different ends of an epoch.
        self._epoch_length = self._distributed.broadcast(self._length_of_an_epoch())
        context._epoch_len = int(self._epoch_length) if math.isfinite(self._epoch_length) else None
        self._model = self._build_model()
        self._callbacks = self._own_callbacks()
        # Before loading, since Keras' callbacks reset in `on_train_begin` what their state restores.
        self._callbacks.on_train_begin({})
        self._begun = True
        self._load()
        place = (self._distributed.rank, self._distributed.size)
        self._batches = self._data.endless(self._steps, *place)

    def _length_of_an_epoch(self) -> float:
        config = self._context._settings.exp_conf or {}
        records, size = config.get("records_per_epoch"), self._settings.known_global_batch_size
        if records and size:
            return float(max(records // size, 1))
        try:
            length = len(self._data)
        except TypeError:
            return math.inf
        shares = self._distributed.size if hasattr(self._data, "_load") else 1
        # Rounded up: in an incomplete last round, the other ranks read the first batches of the next pass.
        return float(-(-length // shares))

    def _build_model(self) -> Any:
        model = self._trial.build_model()
        if self._context.model is None or model is not self._context.model:
            raise InvalidExperimentException(
                "build_model() must return what context.wrap_model() returned: wrap the model"
            )
        if not getattr(model, "compiled", True):
            raise InvalidExperimentException("build_model() must compile the model: call model.compile()")
        if self._distributed.size > 1:
            _ranks.average_gradients(model, self._context.optimizers, self._distributed.size)
        return model

    def _own_callbacks(self) -> _Callbacks:
        own_callbacks = list(self._trial.keras_callbacks())
        for callback in own_callbacks:
            if type(callback) in (keras.callbacks.EarlyStopping, keras.callbacks.ReduceLROnPlateau):
                logger.warning(
                    "keras.callbacks.%s looks at the ends of epochs, where there are no validation metrics: "
                    "use determined.keras.callbacks.%s",
                    *[type(callback).__name__] * 2,
                )
            if isinstance(callback, callbacks.TensorBoard):
                callback.log_dir = str(self._context.get_tensorboard_path())
        # The number of epochs and steps is not known in advance.
        return _Callbacks(own_callbacks, model=self._model, verbose=0, epochs=1, steps=None)

    # -- checkpoints

    def _load(self) -> None:
        uuid = self._plan.latest_checkpoint
        if uuid is None:
            return
        with self._core.checkpoint.restore_path(uuid) as path:
            state = _checkpoint.read(path)
            self._build()
            _checkpoint.load(path, self._model, state)
        for callback, saved in zip(self._callbacks.callbacks, state["callbacks"], strict=False):
            if isinstance(callback, callbacks.Callback):
                callback.load_state(saved)
        # The same ranks go on with their own random numbers; with another count all take those of the chief.
        each = state["random"]
        _checkpoint.restore_random_state(
            each[self._distributed.rank] if len(each) == self._distributed.size else each[0]
        )
        if self._resume_counters(state["counters"], self._context._steps_completed):
            self._context._index = self._steps - 1

    def _build(self) -> None:
        """Build a model without a declared input, taking the shapes from a batch."""
        if self._model.built:
            return
        batch = next(self._data.once(0, 1))
        self._model.test_on_batch(*keras.utils.unpack_x_y_sample_weight(batch))

    def _write(self, *, alone: bool = False) -> None:
        # The state of random generators differs by rank, so each rank contributes its own.
        mine = _checkpoint.random_state()
        if alone and not self._chief:
            return
        each = [mine] if alone else self._distributed.gather(mine)
        if each is not None:
            self._write_files(each)
        if not alone:
            # All ranks continue together, so that none modifies state that is still being written.
            self._distributed.broadcast(None)

    def _write_files(self, each: list[dict[str, Any]]) -> None:
        self._counters.last_ckpt = self._steps
        states = [
            callback.get_state() if isinstance(callback, callbacks.Callback) else None
            for callback in self._callbacks.callbacks
        ]
        with self._core.checkpoint.store_path(_checkpoint.metadata(self._steps)) as (path, _):
            _checkpoint.write(path, self._model, self._counters, {"random": each, "callbacks": states})
            _checkpoint.write_load_data(path, self._trial, self._settings)
            self._code.copy_to(path)
            self._callbacks.tell("on_checkpoint_end", str(path))

    # -- a window

    def _begin_window(self) -> None:
        self._window = []
        self._callbacks.tell("on_train_workload_begin", self._steps, None, {})

    def _train_batch(self) -> None:
        index, length = self._steps, self._epoch_length
        batch = next(self._batches)
        self._context._index = index
        epoch, place = (int(index // length), int(index % length)) if math.isfinite(length) else (0, index)
        if not place:
            self._callbacks.on_epoch_begin(epoch, {})
        self._callbacks.on_train_batch_begin(place, {})
        logs = self._fit(batch)
        self._window.append(logs)
        self._callbacks.on_train_batch_end(place, logs)
        self._counters.batches_trained = index + 1
        if place + 1 == length:
            self._counters.epochs_trained = epoch + 1
            self._callbacks.on_epoch_end(epoch, {})

    def _fit(self, batch: Any) -> dict[str, Any]:
        x, y, weight = keras.utils.unpack_x_y_sample_weight(batch)
        values = self._model.train_on_batch(
            x, y, sample_weight=weight, class_weight=self._context._fit.class_weight, return_dict=True
        )
        return {name: float(value) for name, value in values.items()}

    def _report_window(self) -> None:
        batches = self._window
        if self._distributed.size > 1:
            ranks = self._distributed.allgather(batches)
            batches = [_means(list(parts)) for parts in zip(*ranks, strict=True)]
        averages = _means(batches)
        if self._chief:
            self._core.train.report_training_metrics(self._steps, averages, batches)
        if self._context._fit.verbose and self._chief:
            logger.info("batch %d: %s", self._steps, averages)
        self._callbacks.tell("on_train_workload_end", self._steps, averages)

    # -- validations

    def _evaluate(self, most_batches: int | None) -> dict[str, Any] | None:
        self._callbacks.tell_test_begin()
        metrics = self._over_ranks(*self._evaluate_share(most_batches))
        self._callbacks.tell_test_end(metrics)
        return {f"val_{name}": value for name, value in metrics.items()} if self._chief else None

    def _evaluate_share(self, most_batches: int | None) -> tuple[dict[str, Any], int]:
        """Return this rank's metrics, and the number of records they cover."""
        most = most_batches or self._context._fit.validation_steps
        counts: list[int] = []
        batches = itertools.islice(
            self._validation_data.once(self._distributed.rank, self._distributed.size), most
        )
        # Keras fails on an empty iterator, but a small data set may leave this rank without a batch.
        first = next(batches, None)
        if first is None:
            return {}, 0
        with warnings.catch_warnings():
            # Running out of batches is the normal end of the pass.
            warnings.filterwarnings("ignore", message=".*ran out of data")
            values = self._model.evaluate(
                _counted(itertools.chain([first], batches), counts),
                callbacks=self._callbacks,
                verbose=0,
                return_dict=True,
            )
        return {name: float(value) for name, value in values.items()}, sum(counts)

    def _over_ranks(self, metrics: dict[str, Any], count: int) -> dict[str, Any]:
        """Return the mean over all records of all ranks."""
        # A rank without a batch has no metrics, and counts nothing in the mean.
        shares = [share for share in self._distributed.allgather((metrics, count)) if share[1]]
        if not shares:
            raise RuntimeError("the validation data is empty: its loader gave no batch")
        total = sum(number for _, number in shares)
        return {
            name: sum(rank_metrics[name] * n for rank_metrics, n in shares) / total for name in shares[0][0]
        }

    # -- the end

    def _stop_requested(self) -> bool:
        return self._context.get_stop_requested() or bool(self._model.stop_training)

    def _write_validation_events(self, metrics: dict[str, Any]) -> None:
        """Do nothing: the Core API writes events for reported metrics."""

    def _upload_events(self) -> None:
        """Do nothing: the Core API uploads event files periodically and at the end."""

    def _shut_down(self) -> None:
        # Keras callbacks may fail at an end without a beginning.
        if self._begun:
            self._callbacks.on_train_end({})


def _counted(batches: Iterator[Any], counts: list[int]) -> Iterator[Any]:
    for batch in batches:
        counts.append(records(batch))
        yield batch


def _means(batches: list[dict[str, Any]]) -> dict[str, Any]:
    names = batches[0] if batches else {}
    return {name: mean_of_numbers([batch.get(name) for batch in batches]) for name in names}
