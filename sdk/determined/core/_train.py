"""Reporting metrics and training status (core API spec, section 6)."""

import enum
import logging
import operator
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from det_contracts.limits import MAX_EXACT_INTEGER
from determined import _arguments
from determined.core import _tensorboard
from determined.core._distributed import DistributedContext, DummyDistributedContext
from determined.core._encode import encode, encode_metrics
from determined.core._metric_names import VALIDATION, MetricNames
from determined.transport.offline import OfflineTransport
from determined.transport.protocol import MetricReport

if TYPE_CHECKING:
    from determined.core._tensorboard_auto import AutomaticTensorboard
    from determined.transport.protocol import Transport

logger = logging.getLogger("determined.core")

TRAINING = "training"


class EarlyExitReason(enum.Enum):
    """Why a trial ends by its own decision.

    Example:
        ```python
        core_context.train.report_early_exit(det.core.EarlyExitReason.INVALID_HP)
        ```
    """

    INVALID_HP = "EXITED_REASON_INVALID_HP"
    USER_REQUESTED_STOP = "EXITED_REASON_USER_REQUESTED_STOP"


class TrainContext:
    """Reports metrics and training status: `core_context.train`.

    Report calls return within microseconds. Reports are stored in order, even if the cluster is unreachable
    for a while. If the cluster refuses a report, for example because the same metric was already reported for
    the same steps, a later call raises RuntimeError.

    Example:
        ```python
        train = core_context.train
        train.report_training_metrics(steps_completed=100, metrics={"loss": 0.25})
        train.report_validation_metrics(steps_completed=100, metrics={"accuracy": 0.91})
        ```
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
        searcher_metric: str | None = None,
    ) -> None:
        """`tensorboard_upload` serves manual uploads by the script; `tensorboard` uploads automatically."""
        self._transport = transport
        self._rank = dist.rank
        self._trial_id = trial_id
        self._exp_id = exp_id
        self._run_id = run_id
        self._tensorboard_path = tensorboard_path or _tensorboard.tensorboard_path("local")
        self._tensorboard_upload = tensorboard_upload
        self._tensorboard = tensorboard
        self._exit_reported = False
        self._names = MetricNames(searcher_metric)
        self._last_validation: int | None = None

    def report_training_metrics(
        self,
        steps_completed: int,
        metrics: dict[str, Any],
        batch_metrics: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        """Report training metrics. Chief only.

        Args:
            steps_completed: Total number of steps trained so far, usually batches. It is the x axis of
                charts.
            metrics: Metric values by name. Numbers are charted; other values are stored if they have a JSON
                form. NumPy and torch scalars count as numbers. NaN and infinities are kept.
            batch_metrics: Metrics of the individual batches since the last report. Stored, not charted.

        Raises:
            RuntimeError: If called on a rank other than the chief, or if the cluster refused an earlier
                report.
            TypeError: If a value has no JSON form, or `steps_completed` is not an integer.
            ValueError: If `steps_completed` is negative, or 2**53 or more.

        Example:
            ```python
            core_context.train.report_training_metrics(steps_completed=100, metrics={"loss": 0.25})
            ```
        """
        self._report_trial_metrics(TRAINING, steps_completed, metrics, batch_metrics)

    def report_validation_metrics(self, steps_completed: int, metrics: dict[str, Any]) -> None:
        """Report validation metrics. Chief only.

        Args:
            steps_completed: Total number of steps trained so far.
            metrics: Metric values by name, as for training. Values of type bytes are dropped with a warning.

        Raises:
            RuntimeError: If a value is None, if called on a rank other than the chief, or if the cluster
                refused an earlier report.
            TypeError: If a value has no JSON form, or `steps_completed` is not an integer.
            ValueError: If `steps_completed` is negative, or 2**53 or more.

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
        # The usual case first: training loops call this for every batch, and it has a microsecond.
        steps = total_batches if type(total_batches) is int else _steps(total_batches)
        if not 0 <= steps < MAX_EXACT_INTEGER:
            raise ValueError(f"steps_completed must be an integer from 0 to 2**53 - 1, not {steps}")
        batches = None if batch_metrics is None else _encode_batches(batch_metrics)
        report = MetricReport(group, steps, encode_metrics(metrics), batches)
        self._transport.report(report)
        self._names.reported(group, report.metrics)
        if self._tensorboard is not None:
            self._tensorboard.add(report)

    def _get_last_validation(self) -> int | None:
        """Return the steps of the last validation that this process reported."""
        return self._last_validation

    def set_status(self, status: str) -> None:
        """Set a short status text of the running script, such as "validating".

        Args:
            status: The text; it replaces the one before.

        Example:
            ```python
            core_context.train.set_status("downloading the data")
            ```
        """
        self._transport.set_status(encode(str(status)))

    def report_early_exit(self, reason: EarlyExitReason) -> None:
        """Report why the trial ends by its own decision. Any rank may call it; later calls only warn.

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
        reason = _arguments.member("reason", reason, EarlyExitReason)
        if self._exit_reported:
            logger.warning("the early exit was reported before; %s is ignored", reason.value)
            return
        # Marked before it is sent, so that an error in sending is not followed by a second reason.
        self._exit_reported = True
        self._transport.exit_early(reason.value)

    def get_experiment_best_validation(self) -> float | None:
        """Return the best value of the searcher metric in the whole experiment so far.

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
        """Wait until all TensorBoard files are stored."""
        if self._tensorboard is not None:
            self._tensorboard.close()

    def get_tensorboard_path(self) -> pathlib.Path:
        """Return the directory for this process's TensorBoard event files.

        Returns:
            A path, which may not exist yet. Files in it are stored with the trial.

        Example:
            ```python
            writer = SummaryWriter(log_dir=str(core_context.train.get_tensorboard_path()))
            ```
        """
        return self._tensorboard_path

    def upload_tensorboard_files(
        self,
        selector: _tensorboard.Selector = _tensorboard.everything,
        mangler: _tensorboard.Mangler = _tensorboard.as_it_is,
    ) -> None:
        """Store the TensorBoard files that have changed since the last call. Any rank may call it.

        Args:
            selector: Chooses the files. Called with the absolute path of each file.
            mangler: Chooses where a file is stored. Called with its path relative to the directory and the
                rank; returns the target path. Use it to keep files of different ranks apart.

        Raises:
            RuntimeError: If `core.init` was not called with `TensorboardMode.MANUAL`.
            TypeError: If one of the two is no function.

        Example:
            ```python
            writer.flush()
            core_context.train.upload_tensorboard_files()
            ```
        """
        _check_functions(selector, mangler)
        if self._tensorboard_upload is None:
            raise RuntimeError("upload_tensorboard_files() needs core.init() with TensorboardMode.MANUAL")
        self._tensorboard_upload.send(selector, mangler)


def _steps(steps_completed: Any) -> int:
    if isinstance(steps_completed, float) and steps_completed.is_integer():
        return int(steps_completed)
    try:
        # An index like `numpy.int64`, but no float such as 3.5, which would be cut off silently.
        return operator.index(steps_completed)
    except TypeError:
        raise TypeError(f"steps_completed must be an integer, not {repr(steps_completed)[:100]}") from None


def _encode_batches(batch_metrics: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    try:
        return [encode_metrics(batch) for batch in batch_metrics]
    except TypeError as error:
        raise TypeError(f"batch_metrics must be a list of dicts, one for each batch: {error}") from None


def _check_functions(selector: Any, mangler: Any) -> None:
    for name, function in (("selector", selector), ("mangler", mangler)):
        if not callable(function):
            raise TypeError(_arguments.wrong(name, "a function that takes a path", function))


def _valid_validation(metrics: dict[str, Any]) -> dict[str, Any]:
    _arguments.mapping("metrics", metrics, "a dict of name to value")
    dropped = []
    for name, value in metrics.items():
        if value is None:
            raise RuntimeError(f"Validation metric '{name}' returned an invalid scalar value: None")
        # Dropped with a warning and not refused, as in 0.25.
        if isinstance(value, bytes | bytearray):
            dropped.append(name)
    if not dropped:
        return metrics
    logger.warning("Removed non serializable metrics: %s", ", ".join(map(str, dropped)))
    return {name: value for name, value in metrics.items() if name not in dropped}


class DummyTrainContext(TrainContext):
    """Writes reports to the log. Values without a JSON form are refused, as on a cluster."""

    def __init__(self, tensorboard_path: pathlib.Path | None = None) -> None:
        super().__init__(OfflineTransport(), DummyDistributedContext(), tensorboard_path=tensorboard_path)

    def report_validation_metrics(self, steps_completed: int, metrics: dict[str, Any]) -> None:
        """Write validation metrics to the log."""
        self._report_trial_metrics(VALIDATION, steps_completed, metrics)
        self._last_validation = steps_completed

    def upload_tensorboard_files(
        self,
        selector: _tensorboard.Selector = _tensorboard.everything,
        mangler: _tensorboard.Mangler = _tensorboard.as_it_is,
    ) -> None:
        """Leave the files where they are."""
        _check_functions(selector, mangler)
        logger.info("TensorBoard files stay in %s", self._tensorboard_path)
