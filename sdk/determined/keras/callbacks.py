"""Keras callbacks, extended with platform events and a state in checkpoints.

You may use any `keras.callbacks.Callback`, but two things differ from `model.fit()`. `on_epoch_end` gets no
metrics, because validations and epochs need not coincide. And to continue after a pause, a callback must keep
its state in checkpoints (`get_state`, `load_state`). `EarlyStopping` and `ReduceLROnPlateau` in this module
handle both: they act on each validation.
"""

from __future__ import annotations

from typing import Any

import keras


class Callback(keras.callbacks.Callback):  # type: ignore[misc]
    """A Keras callback with additional events. Every rank calls all of them.

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
            total_batches_trained: Number of batches of this trial so far, on one slot.
            batches_requested: Always None, because the end of the window is not known in advance.
            logs: Empty.

        Example:
            ```python
            def on_train_workload_begin(self, total_batches_trained, batches_requested, logs):
                print(f"the next {batches_requested} batches begin at {total_batches_trained}")
            ```
        """

    def on_train_workload_end(self, total_batches_trained: int, logs: dict[str, Any]) -> None:
        """Called after a window of batches.

        Args:
            total_batches_trained: Number of batches of this trial so far, on one slot.
            logs: Mean over the batches of the window, by metric name.

        Example:
            ```python
            def on_train_workload_end(self, total_batches_trained, logs):
                print(f"after {total_batches_trained} batches: {logs}")
            ```
        """

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        """Called on the chief after all files of a checkpoint are written, before any is uploaded.

        Args:
            checkpoint_dir: The directory. Files added to it are uploaded too.

        Example:
            ```python
            def on_checkpoint_end(self, checkpoint_dir):
                (pathlib.Path(checkpoint_dir) / "labels.json").write_text(json.dumps(self.labels))
            ```
        """

    def get_state(self) -> Any:
        """Return the state to store in checkpoints. It must be picklable.

        Example:
            ```python
            def get_state(self):
                return {"best": self.best}
            ```
        """
        return None

    def load_state(self, state: Any) -> None:
        """Restore the state that `get_state` returned. Called after `on_train_begin`.

        Args:
            state: The state stored in the checkpoint.

        Example:
            ```python
            def load_state(self, state):
                self.best = state["best"]
            ```
        """


class _ByValidation(Callback):
    """Makes an epoch-based Keras callback act on validations instead."""

    _state_names: tuple[str, ...] = ()
    _validations = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Accepts the arguments of the Keras class of the same name."""
        super().__init__(*args, **kwargs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Do nothing: not every epoch ends with a validation.

        Args:
            epoch: Index of the epoch.
            logs: Not used.

        Example:
            ```python
            # After as many validations as there were epochs before: one per epoch.
            config = {"min_validation_period": {"epochs": 1}}
            ```
        """

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        """Process the metrics of a validation.

        Args:
            logs: Metrics of the validation, by name without the prefix `val_`.

        Example:
            ```python
            stopping.on_test_end({"loss": 0.5})    # what it monitors is called "val_loss"
            ```
        """
        self._validations += 1
        named = {f"val_{name}": value for name, value in (logs or {}).items()}
        super().on_epoch_end(self._validations, named)

    def get_state(self) -> Any:
        """Return the counters and the best value so far.

        Example:
            ```python
            stopping.get_state()["best"]    # the best value of the monitored metric so far
            ```
        """
        return {name: getattr(self, name) for name in ("_validations", *self._state_names)}

    def load_state(self, state: Any) -> None:
        """Restore the counters and the best value from a checkpoint.

        Args:
            state: A state returned by `get_state()`.

        Example:
            ```python
            stopping.load_state(state)    # state: what get_state() returned in an earlier run
            ```
        """
        for name, value in state.items():
            setattr(self, name, value)


class EarlyStopping(_ByValidation, keras.callbacks.EarlyStopping):  # type: ignore[misc]
    """Stops the trial when a metric has stopped improving. `patience` counts validations.

    Accepts the arguments of `keras.callbacks.EarlyStopping`; `monitor` names a validation metric
    (`val_loss`). `min_validation_period` in the configuration determines how often validations happen.

    Example:
        ```python
        def keras_callbacks(self):
            return [EarlyStopping(monitor="val_accuracy", patience=3)]
        ```
    """

    _state_names = ("wait", "stopped_epoch", "best", "best_weights", "best_epoch")


class ReduceLROnPlateau(_ByValidation, keras.callbacks.ReduceLROnPlateau):  # type: ignore[misc]
    """Lowers the learning rate when a metric has stopped improving. `patience` counts validations.

    Accepts the arguments of `keras.callbacks.ReduceLROnPlateau`; `monitor` names a validation metric
    (`val_loss`).

    Example:
        ```python
        def keras_callbacks(self):
            return [ReduceLROnPlateau(monitor="val_loss", factor=0.5, patience=2)]
        ```
    """

    _state_names = ("wait", "best", "cooldown_counter")


class TensorBoard(Callback, keras.callbacks.TensorBoard):  # type: ignore[misc]
    """Keras' TensorBoard callback, writing to the directory whose event files the platform stores.

    Accepts the arguments of `keras.callbacks.TensorBoard` except `log_dir`, which the platform sets. Requires
    TensorFlow. Reported metrics become events even without this callback.

    Example:
        ```python
        def keras_callbacks(self):
            return [TensorBoard(histogram_freq=1)]
        ```
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Accepts the arguments of `keras.callbacks.TensorBoard`.

        Raises:
            ValueError: If `log_dir` is given.
        """
        if "log_dir" in kwargs:
            raise ValueError("log_dir is set by the platform: leave it out")
        super().__init__(*args, **kwargs)

    def get_state(self) -> Any:
        """Return the step counters of the events.

        Example:
            ```python
            state = tensorboard.get_state()    # stored with each checkpoint
            ```
        """
        return {name: getattr(self, name, 0) for name in ("_global_train_batch", "_global_test_batch")}

    def load_state(self, state: Any) -> None:
        """Restore the step counters from a checkpoint.

        Args:
            state: A state returned by `get_state()`.

        Example:
            ```python
            tensorboard.load_state(state)    # the events go on at the step where they ended
            ```
        """
        for name, value in state.items():
            setattr(self, name, value)
