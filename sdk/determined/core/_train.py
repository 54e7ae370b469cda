"""Metrics and state of the training (core API spec, section 6)."""

import enum
import logging
import operator
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from determined.core import _tensorboard
from determined.core._distributed import DistributedContext, DummyDistributedContext
from determined.core._encode import encode_metrics
from determined.core._metric_names import MetricNames
from determined.transport.offline import OfflineTransport
from determined.transport.protocol import MetricReport

if TYPE_CHECKING:
    from determined.core._tensorboard_auto import AutomaticTensorboard
    from determined.transport.protocol import Transport

logger = logging.getLogger("determined.core")

TRAINING = "training"
VALIDATION = "validation"


class EarlyExitReason(enum.Enum):
    """Why a trial ends by its own will."""

    INVALID_HP = "EXITED_REASON_INVALID_HP"
    USER_REQUESTED_STOP = "EXITED_REASON_USER_REQUESTED_STOP"


class TrainContext:
    """Reports how training goes: `core_context.train`.

    Reports return at once, within microseconds, and are stored in order, also when the cluster cannot be
    reached for a while. One that the cluster refuses, for example a key that was reported before for the same
    steps, raises RuntimeError from a later call.
    """

    def __init__(
        self,
        transport: "Transport",
        dist: DistributedContext,
        *,
        trial_id: int = 0,
        exp_id: int = 0,
        run_id: int = 0,
        tensorboard_path: pathlib.Path | None = None,
        tensorboard_upload: "_tensorboard.TensorboardUpload | None" = None,
        tensorboard: "AutomaticTensorboard | None" = None,
    ) -> None:
        """`tensorboard_upload` serves calls of the script, `tensorboard` does without."""
        self._transport = transport
        self._rank = dist.rank
        self._trial_id = trial_id
        self._exp_id = exp_id
        self._run_id = run_id
        self._tensorboard_path = tensorboard_path or _tensorboard.tensorboard_path("local")
        self._tensorboard_upload = tensorboard_upload
        self._tensorboard = tensorboard
        self._exit_reported = False
        self._names = MetricNames()
        self._last_validation: int | None = None

    def report_training_metrics(
        self,
        steps_completed: int,
        metrics: dict[str, Any],
        batch_metrics: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        """Report metrics of the training. The chief alone may.

        Args:
            steps_completed: How many steps the trial has trained in all; the x axis of charts. Usually
                batches.
            metrics: Value by name. Numbers are charted; other values with a JSON form are stored. NumPy and
                torch scalars count as numbers; NaN and infinities are kept.
            batch_metrics: Metrics of the single batches since the last report; stored, not charted.

        Raises:
            RuntimeError: On a rank other than the chief, or when the cluster has refused an earlier report.
            TypeError: For a value without a JSON form, or steps that are not a whole number.

        Example:
            ```python
            core_context.train.report_training_metrics(steps_completed=100, metrics={"loss": 0.25})
            ```
        """
        self._report_trial_metrics(TRAINING, steps_completed, metrics, batch_metrics)

    def report_validation_metrics(self, steps_completed: int, metrics: dict[str, Any]) -> None:
        """Report metrics of a validation. The chief alone may.

        Args:
            steps_completed: How many steps the trial has trained in all.
            metrics: Value by name, as for training. Values that are bytes are left out with a warning.

        Raises:
            RuntimeError: For a value None, on a rank other than the chief, or when the cluster has refused an
                earlier report.
            TypeError: For a value without a JSON form, or steps that are not a whole number.

        Example:
            ```python
            core_context.train.report_validation_metrics(steps_completed=100, metrics={"accuracy": 0.91})
            ```
        """
        self._report_trial_metrics(VALIDATION, steps_completed, _valid_validation(metrics))
        self._last_validation = steps_completed

    def _report_trial_metrics(
        self,
        group: str,
        total_batches: int,
        metrics: dict[str, Any],
        batch_metrics: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        if self._rank != 0:
            raise RuntimeError(f"{group} metrics reported by non-chief rank {self._rank}; only rank 0 may")
        steps = total_batches if type(total_batches) is int else _steps(total_batches)
        batches = None if batch_metrics is None else [encode_metrics(batch) for batch in batch_metrics]
        report = MetricReport(group, steps, encode_metrics(metrics), batches)
        self._transport.report(report)
        self._names.reported(group, report.metrics)
        if self._tensorboard is not None:
            self._tensorboard.add(report)

    def _get_last_validation(self) -> int | None:
        """Steps of the last validation that this process reported."""
        return self._last_validation

    def set_status(self, status: str) -> None:
        """Show a short text, such as "validating", as the state of the running script.

        Args:
            status: The text; it replaces the one before.

        Example:
            ```python
            core_context.train.set_status("downloading the data")
            ```
        """
        self._transport.set_status(str(status))

    def report_early_exit(self, reason: EarlyExitReason) -> None:
        """Report why the trial is about to end by its own decision. Any rank may; a second report only warns.

        Args:
            reason: `INVALID_HP`: the hyperparameters make no sense, the search tries others.
                `USER_REQUESTED_STOP`: the trial has trained enough.

        Example:
            ```python
            if batch_size > len(dataset):
                core_context.train.report_early_exit(det.core.EarlyExitReason.INVALID_HP)
                sys.exit()
            ```
        """
        reason = EarlyExitReason(reason)
        if self._exit_reported:
            logger.warning("the early exit was reported before; %s is ignored", reason.value)
            return
        self._exit_reported = True
        self._transport.exit_early(reason.value)

    def get_experiment_best_validation(self) -> float | None:
        """Return the best value of the searcher's metric in the whole experiment so far.

        Returns:
            The value, or None when no trial has validated yet, or off cluster.

        Example:
            ```python
            best = core_context.train.get_experiment_best_validation()
            if best is None or loss < best:
                save_checkpoint()
            ```
        """
        return self._transport.best_validation()

    def _finish(self) -> None:
        """Wait until TensorBoard files are stored."""
        if self._tensorboard is not None:
            self._tensorboard.close()

    def get_tensorboard_path(self) -> pathlib.Path:
        """Return the directory for TensorBoard event files of this process.

        Returns:
            A path; the directory may not exist yet. What lies there is stored with the trial.
        """
        return self._tensorboard_path

    def upload_tensorboard_files(
        self,
        selector: _tensorboard.Selector = _tensorboard.everything,
        mangler: _tensorboard.Mangler = _tensorboard.as_it_is,
    ) -> None:
        """Store the TensorBoard files that have changed since the last call. Any rank may.

        Args:
            selector: Which files: called with the absolute path of each.
            mangler: Called with the path below the directory and the rank; returns the path to store the file
                under, so that files of several ranks do not meet.

        Raises:
            RuntimeError: Unless `core.init` was called with `TensorboardMode.MANUAL`.
        """
        if self._tensorboard_upload is None:
            raise RuntimeError("upload_tensorboard_files() needs core.init() with TensorboardMode.MANUAL")
        self._tensorboard_upload.send(selector, mangler)


def _steps(steps_completed: Any) -> int:
    if isinstance(steps_completed, float) and steps_completed.is_integer():
        return int(steps_completed)
    try:
        return operator.index(steps_completed)
    except TypeError:
        raise TypeError(f"steps_completed must be an integer, not {steps_completed!r}") from None


def _valid_validation(metrics: dict[str, Any]) -> dict[str, Any]:
    dropped = []
    for name, value in metrics.items():
        if value is None:
            raise RuntimeError(f"Validation metric '{name}' returned an invalid scalar value: None")
        if isinstance(value, bytes | bytearray):
            dropped.append(name)
    if not dropped:
        return metrics
    logger.warning("Removed non serializable metrics: %s", ", ".join(map(str, dropped)))
    return {name: value for name, value in metrics.items() if name not in dropped}


class DummyTrainContext(TrainContext):
    """Write reports to the log; what has no JSON form is refused as on a cluster."""

    def __init__(self, tensorboard_path: pathlib.Path | None = None) -> None:
        super().__init__(OfflineTransport(), DummyDistributedContext(), tensorboard_path=tensorboard_path)

    def report_validation_metrics(self, steps_completed: int, metrics: dict[str, Any]) -> None:
        """Write metrics of a validation to the log."""
        self._report_trial_metrics(VALIDATION, steps_completed, metrics)
        self._last_validation = steps_completed

    def upload_tensorboard_files(
        self,
        selector: _tensorboard.Selector = _tensorboard.everything,
        mangler: _tensorboard.Mangler = _tensorboard.as_it_is,
    ) -> None:
        """Leave the files where they are."""
        logger.info("TensorBoard files stay in %s", self._tensorboard_path)
