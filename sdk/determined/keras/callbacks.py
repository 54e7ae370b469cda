"""Callbacks of Keras trials: those of Keras, with the moments of the platform and a state in checkpoints.

Any `keras.callbacks.Callback` may be used. Two things differ from `model.fit()`: `on_epoch_end` gets no
metrics, since validations and epochs need not coincide; and a callback that is to go on after a pause keeps
its state in checkpoints (`get_state`, `load_state`). `EarlyStopping` and `ReduceLROnPlateau` of this module
do both right: they look at each validation.
"""

from __future__ import annotations

from typing import Any

import keras


class Callback(keras.callbacks.Callback):  # type: ignore[misc]
    """A Keras callback with further moments; every rank calls all of them.

    Example:
        ```python
        class Count(Callback):
            def __init__(self):
                self.windows = 0

            def on_train_workload_end(self, total_batches_trained, logs):
                self.windows += 1

            def get_state(self):
                return self.windows

            def load_state(self, state):
                self.windows = state
        ```
    """

    def on_train_workload_begin(
        self, total_batches_trained: int, batches_requested: int | None, logs: dict[str, Any]
    ) -> None:
        """Called before a window of batches, which ends at the next report, validation or checkpoint.

        Args:
            total_batches_trained: Batches of this trial so far, on one slot.
            batches_requested: Always None: where the window ends is found as it is trained.
            logs: Empty.
        """

    def on_train_workload_end(self, total_batches_trained: int, logs: dict[str, Any]) -> None:
        """Called after a window of batches.

        Args:
            total_batches_trained: Batches of this trial so far, on one slot.
            logs: Mean over the batches of the window, by the name of the metric.
        """

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        """Called on the chief when all files of a checkpoint are written and none is uploaded.

        Args:
            checkpoint_dir: The folder; files that are added to it are uploaded, too.
        """

    def get_state(self) -> Any:
        """Return what of this callback belongs into checkpoints; anything that can be pickled."""
        return None

    def load_state(self, state: Any) -> None:
        """Take over what `get_state` returned; called after `on_train_begin`.

        Args:
            state: As `get_state` returned it when the checkpoint was written.
        """


class _ByValidation(Callback):
    """Makes a callback of Keras that goes by epochs go by validations."""

    _kept: tuple[str, ...] = ()
    _validations = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take the arguments of the class of the same name in Keras."""
        super().__init__(*args, **kwargs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Do nothing: not every epoch ends with a validation.

        Args:
            epoch: Index of the epoch.
            logs: Not used.
        """

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        """Look at the metrics of a validation.

        Args:
            logs: Metrics of the validation, by name without the prefix `val_`.
        """
        self._validations += 1
        named = {f"val_{name}": value for name, value in (logs or {}).items()}
        super().on_epoch_end(self._validations, named)

    def get_state(self) -> Any:
        """Return the counters and the best value so far."""
        return {name: getattr(self, name) for name in ("_validations", *self._kept)}

    def load_state(self, state: Any) -> None:
        """Continue with the counters and the best value of a checkpoint.

        Args:
            state: What `get_state()` returned.
        """
        for name, value in state.items():
            setattr(self, name, value)


class EarlyStopping(_ByValidation, keras.callbacks.EarlyStopping):  # type: ignore[misc]
    """Stops the trial when a metric has stopped improving; `patience` counts validations.

    Takes the arguments of `keras.callbacks.EarlyStopping`; `monitor` is the name of a validation metric
    (`val_loss`). How often there is a validation is `min_validation_period` of the configuration.

    Example:
        ```python
        def keras_callbacks(self):
            return [EarlyStopping(monitor="val_accuracy", patience=3)]
        ```
    """

    _kept = ("wait", "stopped_epoch", "best", "best_weights", "best_epoch")


class ReduceLROnPlateau(_ByValidation, keras.callbacks.ReduceLROnPlateau):  # type: ignore[misc]
    """Lowers the learning rate when a metric has stopped improving; `patience` counts validations.

    Takes the arguments of `keras.callbacks.ReduceLROnPlateau`; `monitor` is the name of a validation metric
    (`val_loss`).

    Example:
        ```python
        def keras_callbacks(self):
            return [ReduceLROnPlateau(monitor="val_loss", factor=0.5, patience=2)]
        ```
    """

    _kept = ("wait", "best", "cooldown_counter")


class TensorBoard(Callback, keras.callbacks.TensorBoard):  # type: ignore[misc]
    """Keras' own TensorBoard callback, writing where the platform stores event files from.

    Takes the arguments of `keras.callbacks.TensorBoard` but for `log_dir`, which is the trial's. It needs
    TensorFlow. Metrics that are reported become events without it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take the arguments of `keras.callbacks.TensorBoard`.

        Raises:
            ValueError: `log_dir` is given.
        """
        if "log_dir" in kwargs:
            raise ValueError("log_dir is the platform's to choose: leave it out")
        super().__init__(*args, **kwargs)

    def get_state(self) -> Any:
        """Return how far the steps of the events are."""
        return {name: getattr(self, name, 0) for name in ("_global_train_batch", "_global_test_batch")}

    def load_state(self, state: Any) -> None:
        """Continue with the steps of a checkpoint.

        Args:
            state: What `get_state()` returned.
        """
        for name, value in state.items():
            setattr(self, name, value)
