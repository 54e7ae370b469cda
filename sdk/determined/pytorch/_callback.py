"""Callbacks: user methods called during training (Trainer spec, section 8)."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from determined import _arguments, util

logger = logging.getLogger("determined.pytorch")


class PyTorchCallback:
    """Hooks called during training. Override the methods you need, and return it from `build_callbacks()`.

    Unless stated otherwise, every method is called on every rank. Methods you do not override cost nothing.

    Example:
        ```python
        class Unfreeze(pytorch.PyTorchCallback):
            def __init__(self, backbone):
                self.backbone = backbone

            def on_training_epoch_start(self, epoch_idx):
                self.backbone.requires_grad_(epoch_idx >= 2)
        ```
    """

    def on_trial_startup(self, first_batch_idx: int, checkpoint_uuid: str | None) -> None:
        """Called when `fit()` begins, before data loaders are built.

        Args:
            first_batch_idx: Index of the first batch that will be trained, which is the number of batches
                trained before.
            checkpoint_uuid: Id of the checkpoint that is about to be loaded, or None.

        Example:
            ```python
            def on_trial_startup(self, first_batch_idx, checkpoint_uuid):
                print("a fresh start" if checkpoint_uuid is None else f"from batch {first_batch_idx}")
            ```
        """

    def on_checkpoint_load_start(self, checkpoint: dict[str, Any]) -> None:
        """Called after a checkpoint has been read and before anything is restored from it.

        Args:
            checkpoint: The content of `state_dict.pth`. Changes made in place are restored.

        Example:
            ```python
            def on_checkpoint_load_start(self, checkpoint):
                self.vocabulary = checkpoint.pop("vocabulary", {})
            ```
        """

    def on_training_start(self) -> None:
        """Called after the data loaders and any checkpoint are loaded, before the first batch.

        Example:
            ```python
            def on_training_start(self):
                self.began = time.monotonic()
            ```
        """

    def on_training_epoch_start(self, epoch_idx: int) -> None:
        """Called before the first batch of an epoch.

        Args:
            epoch_idx: Index of the epoch, counted from 0 over the life of the trial.

        Example:
            ```python
            def on_training_epoch_start(self, epoch_idx):
                self.dataset.set_difficulty(epoch_idx)
            ```
        """

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        """Called after the last batch of an epoch, after the learning rate schedulers have stepped.

        Args:
            epoch_idx: Index of the epoch that has ended.

        Example:
            ```python
            def on_training_epoch_end(self, epoch_idx):
                print(f"epoch {epoch_idx} took {time.monotonic() - self.began:.0f} s")
            ```
        """

    def on_training_workload_end(
        self, avg_metrics: dict[str, Any], batch_metrics: list[dict[str, Any]]
    ) -> None:
        """Called after a window of batches has been trained and its metrics are reported.

        A window ends at the next report, validation or checkpoint.

        Args:
            avg_metrics: Mean over the batches of the window and all ranks, by metric name, plus the metrics
                of reducers.
            batch_metrics: Mean over all ranks for each batch of the window, in order.

        Example:
            ```python
            def on_training_workload_end(self, avg_metrics, batch_metrics):
                worst = max(metrics["loss"] for metrics in batch_metrics)
                print(f"loss {avg_metrics['loss']:.3f}, at worst {worst:.3f}")
            ```
        """

    def on_validation_start(self) -> None:
        """Called before a validation, after models were put into evaluation mode.

        Example:
            ```python
            def on_validation_start(self):
                self.weights.swap_in_average()
            ```
        """

    def on_validation_epoch_start(self) -> None:
        """Called before the first `evaluate_batch()`. Not called for `evaluate_full_dataset()`.

        Example:
            ```python
            def on_validation_epoch_start(self):
                self.mistakes = []
            ```
        """

    def on_validation_epoch_end(self, outputs: list[Any]) -> None:
        """Called after the last `evaluate_batch()`. Not called for `evaluate_full_dataset()`.

        Args:
            outputs: The return value of `evaluate_batch()` for each batch of this rank, with tensors
                converted to arrays.

        Example:
            ```python
            def on_validation_epoch_end(self, outputs):
                print("batches validated on this rank:", len(outputs))
            ```
        """

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        """Called after a validation, before its metrics are reported.

        Args:
            metrics: Metrics by name, reduced over all batches and ranks; the same on every rank.

        Example:
            ```python
            def on_validation_end(self, metrics):
                print(f"validation loss {metrics['validation_loss']:.4f}")
            ```
        """

    def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
        """Called on the chief before a checkpoint is written.

        Args:
            checkpoint: The future content of `state_dict.pth`. Changes made in place are stored.

        Example:
            ```python
            def on_checkpoint_save_start(self, checkpoint):
                checkpoint["vocabulary"] = self.vocabulary
            ```
        """

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        """Deprecated: override `on_checkpoint_write_end`, which is called at the same time.

        Args:
            checkpoint_dir: The directory with the files of the checkpoint.

        Example:
            ```python
            def on_checkpoint_write_end(self, checkpoint_dir):    # instead
                shutil.copy("labels.json", checkpoint_dir)
            ```
        """

    def on_checkpoint_write_end(self, checkpoint_dir: str) -> None:
        """Called on the chief after all files of a checkpoint are written, before they are uploaded.

        Args:
            checkpoint_dir: The directory. Files added to it become part of the checkpoint.

        Example:
            ```python
            def on_checkpoint_write_end(self, checkpoint_dir):
                (pathlib.Path(checkpoint_dir) / "labels.json").write_text(json.dumps(self.labels))
            ```
        """

    def on_checkpoint_upload_end(self, uuid: str) -> None:
        """Called after a checkpoint is stored and reported.

        Args:
            uuid: Id of the checkpoint.

        Example:
            ```python
            def on_checkpoint_upload_end(self, uuid):
                print("stored checkpoint", uuid)
            ```
        """

    def on_trial_shutdown(self) -> None:
        """Called when `fit()` ends for any reason, including an exception.

        Example:
            ```python
            def on_trial_shutdown(self):
                self.writer.close()
            ```
        """

    def state_dict(self) -> dict[str, Any]:
        """Return the state of this callback for checkpoints. `torch.save` must be able to write it.

        Returns:
            Values by name.

        Example:
            ```python
            def state_dict(self):
                return {"best": self.best}
            ```
        """
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state from a checkpoint. Called before `on_training_start`.

        Args:
            state_dict: The state that `state_dict()` returned on the chief when the checkpoint was written.

        Example:
            ```python
            def load_state_dict(self, state_dict):
                self.best = state_dict["best"]
            ```
        """


def overrides(callback: PyTorchCallback, method: str) -> bool:
    """Whether a callback overrides a method, in its class or in the object itself."""
    return not util.is_same_method(getattr(callback, method), getattr(PyTorchCallback, method))


class Callbacks:
    """All callbacks of a trial. Methods that are not overridden cost nothing."""

    def __init__(self, callbacks: Mapping[str, PyTorchCallback], timed: Callable[[str], Any]) -> None:
        _arguments.mapping("what build_callbacks() returns", callbacks, "a dict of name to PyTorchCallback")
        self._all = dict(callbacks)
        self._timed = timed
        self._heard: dict[str, list[Callable[..., None]]] = {}
        for name, callback in callbacks.items():
            self._check(name, callback)

    def _check(self, name: str, callback: PyTorchCallback) -> None:
        _arguments.having(f"callback '{name}'", callback, ("on_trial_startup",), "a PyTorchCallback object")
        if overrides(callback, "on_checkpoint_end"):
            warnings.warn(
                f"{type(callback).__name__}.on_checkpoint_end is deprecated: use on_checkpoint_write_end",
                FutureWarning,
                stacklevel=4,
            )

    def tell(self, method: str, *arguments: Any) -> None:
        """Call a method of all callbacks that override it, in order."""
        # Found once: most callbacks override few methods, and some are called with each batch.
        hearing = self._heard.get(method)
        if hearing is None:
            hearing = self._heard[method] = list(self._own(method, self._all.values()))
        for function in hearing:
            function(*arguments)

    def shut_down(self) -> None:
        """Notify callbacks of the shutdown in reverse order. If one fails, the others are still called."""
        failed: Exception | None = None
        # In reverse order, as `with` blocks end, and each also if another fails.
        for function in self._own("on_trial_shutdown", reversed(self._all.values())):
            try:
                function()
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def anybody_hears(self, method: str) -> bool:
        """Whether any callback overrides the method."""
        return any(overrides(callback, method) for callback in self._all.values())

    def _own(self, method: str, callbacks: Iterable[PyTorchCallback]) -> Iterable[Callable[..., None]]:
        for callback in callbacks:
            if overrides(callback, method):
                yield self._with_timing(callback, method)

    def _with_timing(self, callback: PyTorchCallback, method: str) -> Callable[..., None]:
        function = _as_it_was_called(getattr(callback, method), method)
        name = f"callbacks.{type(callback).__name__}.{method}"

        def call(*arguments: Any) -> None:
            with self._timed(name):
                function(*arguments)

        return call

    def state_dict(self) -> dict[str, Any]:
        """Return the states of the callbacks by name."""
        return {name: callback.state_dict() for name, callback in self._all.items()}

    def load_state_dict(self, states: dict[str, Any]) -> None:
        """Restore the state of each callback. Warns if an expected state is missing."""
        for name, callback in self._all.items():
            if name in states:
                callback.load_state_dict(states[name])
            elif overrides(callback, "load_state_dict"):
                logger.warning("the checkpoint holds no state of callback '%s'", name)


def _as_it_was_called(function: Callable[..., None], method: str) -> Callable[..., None]:
    """Adapt an old `on_training_epoch_start` that takes no parameter."""
    if method != "on_training_epoch_start" or inspect.signature(function).parameters:
        return function
    logger.warning("on_training_epoch_start without the parameter epoch_idx is deprecated")
    return lambda _: function()
