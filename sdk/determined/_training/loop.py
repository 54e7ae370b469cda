"""The training loop shared by all trainers: windows of batches between boundaries (Trainer spec, section 9).

A framework's trainer subclasses `BoundaryLoop` and defines how to train a batch, report a window, validate
the model and write a checkpoint. This module decides when these happen, what to tell the search, and when to
stop.
"""

from __future__ import annotations

import abc
import contextlib
import logging
import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

from determined import core
from determined._training import plan as _plan
from determined._training.counters import Counters
from determined._training.plan import Goal, Plan
from determined._training.reducer import scalar
from determined._training.settings import Settings
from determined._training.units import NEVER
from determined.errors import InvalidHP

logger = logging.getLogger("determined.training")
PROGRESS_EVERY_S = 1.0


class Leave(Exception):
    """Ends the run before its goal is reached."""


class BoundaryLoop(abc.ABC):
    """Trains one trial once on this rank. Every rank runs its own loop, in step with the others."""

    def __init__(self, core_context: core.Context, plan: Plan, settings: Settings, local: bool) -> None:
        """With `local` there is no cluster, so `plan.max_length` says how far to train."""
        self._core = core_context
        self._distributed = core_context.distributed
        self._plan = plan
        self._settings = settings
        self._local = local
        self._chief = self._distributed.rank == 0
        self._counters = Counters(trial_id=settings.trial_id or 0)
        self._epoch_length: float = math.inf
        """Number of batches in a pass over the training data on the chief."""
        self._op: Any = None
        self._metrics: dict[str, Any] | None = None
        """Metrics of the validation at the current step, on the chief, if this process ran it."""
        self._progressed_at = -math.inf
        self._shown_status = ""
        # In the order in which they are handled at the same step: a checkpoint then includes the validation.
        self._periods = [
            (name, period)
            for name, period in (
                ("VALIDATE", plan.validation_period),
                ("CHECKPOINT", plan.checkpoint_period),
                ("REPORT", plan.reporting_period),
            )
            if period != NEVER
        ]
        searcher = (settings.exp_conf or {}).get("searcher") or {}
        self._metric: str | None = searcher.get("metric")
        self._smaller_is_better: bool = searcher.get("smaller_is_better", True)

    def _resume_counters(self, stored: Mapping[str, Any], steps_completed: int) -> bool:
        """Resume counting from a checkpoint of this trial.

        Another trial's checkpoint leaves the counters unchanged.

        Args:
            stored: The counters in the checkpoint.
            steps_completed: Number of batches that the cluster has recorded for the trial; unused off
                cluster.

        Returns:
            Whether the checkpoint belongs to this trial.
        """
        resumed = self._counters.resumed(stored)
        if resumed is None:
            return False
        self._counters = resumed
        if not self._local:
            # The cluster's number counts: the search and the curves go by it.
            self._counters.batches_trained = steps_completed
            last_validation = self._core.train._get_last_validation()
            if last_validation is not None:
                self._counters.last_val = last_validation
        return True

    # -- what a framework defines

    @abc.abstractmethod
    def _prepare(self) -> None:
        """Build data and callbacks and load the checkpoint. Sets `_epoch_length` and `_counters`."""

    @abc.abstractmethod
    def _begin_window(self) -> None:
        """Prepare for the batches up to the next boundary."""

    @abc.abstractmethod
    def _train_batch(self) -> None:
        """Train the batch with index `_steps` and add 1 to `_counters.batches_trained`."""

    @abc.abstractmethod
    def _report_window(self) -> None:
        """Report the training metrics of the window. All ranks call this; the chief reports."""

    @abc.abstractmethod
    def _evaluate(self, most_batches: int | None) -> dict[str, Any] | None:
        """Validate. Returns the metrics on the chief, None on other ranks."""

    @abc.abstractmethod
    def _write(self, *, alone: bool = False) -> None:
        """Write a checkpoint of this step. All ranks must call this, unless the chief writes `alone`."""

    @abc.abstractmethod
    def _shut_down(self) -> None:
        """Clean up after training has ended for any reason."""

    def _stop_requested(self) -> bool:
        """Whether the script on this rank requested to stop."""
        return False

    @abc.abstractmethod
    def _write_validation_events(self, metrics: dict[str, Any]) -> None:
        """Write validation metrics as TensorBoard events. Chief only."""

    @abc.abstractmethod
    def _upload_events(self) -> None:
        """Upload event files if there are new ones."""

    def _tracing(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context manager that wraps training."""
        return contextlib.nullcontext()

    # -- the run

    def run(self) -> None:
        """Train from the trial's current state until the search ends or training is stopped."""
        with contextlib.ExitStack() as at_end:
            at_end.push(self._end)
            try:
                self._prepare()
                with self._tracing():
                    self._train_all()
            except Leave:
                logger.info("leaving after %d batches", self._steps)
            except InvalidHP:
                # Other ranks may not know of the exception, so the chief saves alone.
                if self._counters.last_ckpt != self._steps:
                    self._write(alone=True)
                raise

    def _end(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        try:
            self._shut_down()
        except Exception as failure:
            if error is None:
                raise
            # It must not take the place of what ended the training: that is the cause, or an InvalidHP.
            logger.error("the end of the training failed, too, after %r: %r", error, failure)

    @property
    def _steps(self) -> int:
        return self._counters.batches_trained

    # -- operations

    def _train_all(self) -> None:
        if self._plan.step_zero_validation and not self._steps and not self._validated_before():
            self._validate(None)
        for goal in self._goals():
            self._train_to(goal)
            if self._plan.test_mode:
                return

    def _validated_before(self) -> bool:
        return self._core.train._get_last_validation() is not None

    def _goals(self) -> Iterator[Goal]:
        size = self._settings.known_global_batch_size
        if self._local:
            if self._plan.max_length is None:
                raise ValueError("a run outside of a cluster needs max_length")
            yield _plan.goal_of_run(self._plan.max_length, self._epoch_length)
            return
        unit = self._core.searcher.get_configured_units()
        for op in self._core.searcher.operations():
            self._op = op
            yield _plan.goal_of_search(op.length, unit, self._epoch_length, size)
            # Between operations there is none whose progress could be reported.
            self._op = None

    def _train_to(self, goal: Goal) -> None:
        while self._steps < goal.batches:
            reached = self._train_window(goal)
            self._at_boundaries(goal, reached)
            if self._plan.test_mode:
                return
        if self._counters.last_val != self._steps or self._lacks_metric():
            self._validate(goal)
        self._save()
        self._upload_events()

    def _lacks_metric(self) -> bool:
        """Whether the search is waiting for the metric of a validation that an earlier process ran (D3)."""
        if self._op is None:
            return False
        # The chief decides for all: a rank that validated alone would wait in its collectives forever.
        return bool(self._distributed.broadcast(self._metrics is None))

    def _at_boundaries(self, goal: Goal, reached: list[str]) -> None:
        if self._plan.test_mode:
            self._progress(goal, at_once=True)
            self._validate(goal)
            self._save()
            return
        for boundary in reached:
            if boundary == "TRAIN":
                self._progress(goal, at_once=True)
            elif boundary == "VALIDATE" and self._counters.last_val != self._steps:
                self._validate(goal)
            elif boundary == "CHECKPOINT":
                self._save()
            self._upload_events()
            self._look_whether_to_leave()
        self._progress(goal)

    def _look_whether_to_leave(self) -> None:
        stop = self._stop_requested()
        # Any rank may ask to stop, but all have to leave at the same step.
        if self._distributed.size > 1:
            stop = any(self._distributed.allgather(stop))
        preempt = self._core.preempt
        preempted = preempt.should_preempt(auto_ack=False)
        if not preempted and not stop:
            return
        self._save()
        # After the checkpoint: a run that has acknowledged may be ended at any moment.
        if preempted and self._chief:
            preempt.acknowledge_preemption_signal()
        raise Leave

    def _progress(self, goal: Goal, *, at_once: bool = False) -> None:
        now = time.monotonic()
        # Once a second, because each report is a message to the cluster.
        if (
            not self._chief
            or self._op is None
            or (now - self._progressed_at < PROGRESS_EVERY_S and not at_once)
        ):
            return
        self._progressed_at = now
        size = self._settings.known_global_batch_size
        self._op.report_progress(goal.progress(self._steps, self._epoch_length, size))

    # -- a window

    def _train_window(self, goal: Goal) -> list[str]:
        """Train until a boundary. Returns the boundaries reached, in order."""
        self._status("training")
        self._begin_window()
        reached: list[str] = []
        while not reached:
            self._train_batch()
            reached = self._boundaries(goal)
        self._counters.step_id += 1
        self._report_window()
        return reached

    def _boundaries(self, goal: Goal) -> list[str]:
        steps, length = self._counters.batches_trained, self._epoch_length
        reached = []
        if steps >= goal.batches or self._plan.test_mode:
            reached.append("TRAIN")
        for name, period in self._periods:
            if _plan.is_reached(period, steps, length):
                reached.append(name)
        return reached

    # -- validations and checkpoints

    def _validate(self, goal: Goal | None) -> None:
        self._status("validating")
        self._metrics = self._evaluate(1 if self._plan.test_mode else None)
        self._counters.last_val = self._steps
        wanted = False
        if self._metrics is not None:  # on the chief
            wanted = self._report_validation(goal, self._metrics)
        # Only the chief knows the metrics, but all ranks write the checkpoint.
        if self._distributed.broadcast(wanted):
            self._save()

    def _report_validation(self, goal: Goal | None, metrics: dict[str, Any]) -> bool:
        """Report metrics to cluster and search. Returns whether the policy wants a checkpoint. Chief only."""
        # Before the report, which would make this validation one of those that it is compared with.
        best = self._core.train.get_experiment_best_validation() if self._plan.policy == "best" else None
        self._core.train.report_validation_metrics(self._steps, metrics)
        self._write_validation_events(metrics)
        if self._op is not None and goal is not None:
            value = scalar(metrics, str(self._metric))
            if self._steps >= goal.batches:
                self._op.report_completed(value)
        if self._plan.policy == "best" and self._counters.last_ckpt != self._steps:
            return self._is_better(metrics, best)
        return self._plan.policy == "all"

    def _is_better(self, metrics: dict[str, Any], best: float | None) -> bool:
        if self._metric is None or self._metric not in metrics:
            return False
        value = scalar(metrics, self._metric)
        # NaN is neither smaller nor larger than anything, so a checkpoint of it could never be replaced.
        if math.isnan(value):
            return False
        return best is None or (value < best if self._smaller_is_better else value > best)

    def _save(self) -> None:
        """Write a checkpoint, unless this step already has one."""
        if self._counters.last_ckpt == self._steps:
            return
        self._status("checkpointing")
        # Before writing, because the counters are part of the checkpoint.
        self._counters.last_ckpt = self._steps
        self._write()

    def _status(self, text: str) -> None:
        if self._chief and text != self._shown_status:
            self._shown_status = text
            self._core.train.set_status(text)
