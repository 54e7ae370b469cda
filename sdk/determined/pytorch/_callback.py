"""What a script may be told of while it trains (Trainer spec, section 8)."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Callable, Iterable
from typing import Any

logger = logging.getLogger("determined.pytorch")


class PyTorchCallback:
    """Override what is of interest; every rank is called unless it says otherwise."""

    def on_trial_startup(self, first_batch_idx: int, checkpoint_uuid: str | None) -> None:
        """`fit` begins; `first_batch_idx` batches were trained before."""

    def on_checkpoint_load_start(self, checkpoint: dict[str, Any]) -> None:
        """A checkpoint was read, nothing is restored yet; may be changed in place."""

    def on_training_start(self) -> None:
        """All is loaded."""

    def on_training_epoch_start(self, epoch_idx: int) -> None:
        """The first batch of an epoch comes."""

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        """The last batch of an epoch was trained, and schedulers stepped."""

    def on_training_workload_end(
        self, avg_metrics: dict[str, Any], batch_metrics: list[dict[str, Any]]
    ) -> None:
        """A window of batches is over and its metrics reported."""

    def on_validation_start(self) -> None:
        """A validation begins."""

    def on_validation_epoch_start(self) -> None:
        """The loop over `evaluate_batch` begins."""

    def on_validation_epoch_end(self, outputs: list[Any]) -> None:
        """The loop over `evaluate_batch` is over; `outputs` are this rank's."""

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        """The metrics are there and not yet reported."""

    def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
        """Chief only: what will be written; may be changed in place."""

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        """Deprecated: `on_checkpoint_write_end` says what happened. Chief only."""

    def on_checkpoint_write_end(self, checkpoint_dir: str) -> None:
        """Chief only: all files are written, the upload is to come; further ones may be added."""

    def on_checkpoint_upload_end(self, uuid: str) -> None:
        """A checkpoint is stored and reported."""

    def on_trial_shutdown(self) -> None:
        """`fit` ends, whatever for."""

    def state_dict(self) -> dict[str, Any]:
        """What of this callback belongs into checkpoints."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""


def overrides(callback: PyTorchCallback, method: str) -> bool:
    """Whether a callback has a method of its own."""
    return getattr(type(callback), method) is not getattr(PyTorchCallback, method)


class Callbacks:
    """All callbacks of a trial. Those without a method of their own cost nothing."""

    def __init__(self, callbacks: dict[str, PyTorchCallback], timed: Callable[[str], Any]) -> None:
        self._all = callbacks
        self._timed = timed
        self._heard: dict[str, list[Callable[..., None]]] = {}
        for callback in callbacks.values():
            self._check(callback)

    def _check(self, callback: PyTorchCallback) -> None:
        if overrides(callback, "on_checkpoint_end"):
            warnings.warn(
                f"{type(callback).__name__}.on_checkpoint_end is deprecated: use on_checkpoint_write_end",
                FutureWarning,
                stacklevel=4,
            )

    def tell(self, method: str, *given: Any) -> None:
        """Call a method of all callbacks that have their own, in order."""
        hearing = self._heard.get(method)
        if hearing is None:
            hearing = self._heard[method] = list(self._own(method, self._all.values()))
        for function in hearing:
            function(*given)

    def shut_down(self) -> None:
        """In reverse order; a failure of one does not keep the others from hearing of it."""
        failed: Exception | None = None
        for function in self._own("on_trial_shutdown", reversed(self._all.values())):
            try:
                function()
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def anybody_hears(self, method: str) -> bool:
        """Whether some callback has a method of its own."""
        return any(overrides(callback, method) for callback in self._all.values())

    def _own(self, method: str, callbacks: Iterable[PyTorchCallback]) -> Iterable[Callable[..., None]]:
        for callback in callbacks:
            if overrides(callback, method):
                yield self._with_timing(callback, method)

    def _with_timing(self, callback: PyTorchCallback, method: str) -> Callable[..., None]:
        function = _as_it_was_called(getattr(callback, method), method)
        name = f"callbacks.{type(callback).__name__}.{method}"

        def call(*given: Any) -> None:
            with self._timed(name):
                function(*given)

        return call

    def state_dict(self) -> dict[str, Any]:
        """Their states by name."""
        return {name: callback.state_dict() for name, callback in self._all.items()}

    def load_state_dict(self, states: dict[str, Any]) -> None:
        """Give each its state; a warning for one that wants one and has none."""
        for name, callback in self._all.items():
            if name in states:
                callback.load_state_dict(states[name])
            elif overrides(callback, "load_state_dict"):
                logger.warning("the checkpoint holds no state of callback '%s'", name)


def _as_it_was_called(function: Callable[..., None], method: str) -> Callable[..., None]:
    """`on_training_epoch_start` had no parameter once."""
    if method != "on_training_epoch_start" or inspect.signature(function).parameters:
        return function
    logger.warning("on_training_epoch_start without the parameter epoch_idx is deprecated")
    return lambda _: function()
