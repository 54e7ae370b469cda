"""The training loop (Trainer spec, section 9)."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from typing import Any

import torch

from determined.errors import InvalidExperimentException, InvalidHP
from determined.pytorch import _plan
from determined.pytorch._callback import Callbacks
from determined.pytorch._checkpoint import Counters
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._feed import Feed, Passes
from determined.pytorch._plan import Goal, Plan
from determined.pytorch._profiler import Profiler
from determined.pytorch._saving import Saving
from determined.pytorch._trial import PyTorchTrial, evaluates_batches
from determined.pytorch._units import NEVER
from determined.pytorch._validation import Validation, scalar
from determined.pytorch._window import Window, numbers

logger = logging.getLogger("determined.pytorch")
PROGRESS_EVERY_S = 1.0


class Leave(Exception):
    """The run ends here, before its goal."""


class Loop:
    """Trains one trial, once."""

    def __init__(
        self, trial: PyTorchTrial, context: PyTorchTrialContext, plan: Plan, profiler: Profiler, local: bool
    ) -> None:
        if not context.models or not context.optimizers:
            raise InvalidExperimentException(
                f"{type(trial).__name__} wraps {len(context.models)} models and {len(context.optimizers)} "
                "optimizers: call context.wrap_model() and context.wrap_optimizer() in its __init__"
            )
        self._trial = trial
        self._context = context
        self._plan = plan
        self._profiler = profiler
        self._local = local
        self._core = context._core
        self._chief = context.distributed.rank == 0
        self._stepping = context._stepping
        self._stepping.timed = profiler.timed
        self._window = Window()
        self._counters = Counters(trial_id=context._settings.trial_id or 0)
        self._op: Any = None
        self._metrics: dict[str, Any] | None = None
        """Of the validation at the present step, on the chief, as far as this process made it."""
        self._warned_aggregation = False
        self._progressed_at = -math.inf
        self._shown_status = ""
        self._periods = [
            (name, period)
            for name, period in (
                ("VALIDATE", plan.validation_period),
                ("CHECKPOINT", plan.checkpoint_period),
                ("REPORT", plan.reporting_period),
            )
            if period != NEVER
        ]
        config = context._settings.exp_conf or {}
        searcher = config.get("searcher") or {}
        self._metric: str | None = searcher.get("metric")
        self._smaller_is_better: bool = searcher.get("smaller_is_better", True)

    def run(self) -> None:
        """From start to end, whatever that is."""
        callbacks = Callbacks(self._trial.build_callbacks(), self._profiler.timed)
        self._callbacks = callbacks
        self._saving = Saving(self._trial, self._context, callbacks, self._plan, self._local)
        try:
            self._prepare()
            with self._tracing():
                self._train_all()
        except Leave:
            logger.info("leaving after %d batches", self._steps)
        except InvalidHP:
            # Other ranks may not know of it, so the chief saves alone.
            if self._counters.last_ckpt != self._steps:
                self._saving.save(self._counters, alone=True)
            raise
        finally:
            callbacks.shut_down()
            self._context._events.close()

    def _prepare(self) -> None:
        context, callbacks = self._context, self._callbacks
        start = self._saving.steps_before()
        callbacks.tell("on_trial_startup", start, self._plan.latest_checkpoint)
        self._feed = Feed(self._trial.build_training_data_loader(), context)
        passes = Passes(self._trial.build_validation_data_loader(), self._trial, context)
        by_batch = evaluates_batches(self._trial)
        loader = passes if by_batch or not self._chief else passes.whole()
        self._validation = Validation(self._trial, context, callbacks, loader)
        self._epoch_length = self._feed.epoch_length
        context._epoch_len = int(self._epoch_length) if math.isfinite(self._epoch_length) else None
        self._counters, seed = self._saving.load(self._counters)
        context._steps_completed = self._steps
        if self._steps:
            self._stepping.batch_idx = self._steps - 1
        self._batches = self._feed.start(self._steps, seed)
        callbacks.tell("on_training_start")

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
        size = self._context._settings.known_global_batch_size
        if self._local:
            if self._plan.max_length is None:
                raise ValueError("a run outside of a cluster needs max_length")
            yield _plan.goal_of_run(self._plan.max_length, self._epoch_length)
            return
        unit = self._core.searcher.get_configured_units()
        for op in self._core.searcher.operations():
            self._op = op
            yield _plan.goal_of_search(op.length, unit, self._epoch_length, size)
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
        """The search waits for the metric of a validation that an earlier process made (D3)."""
        return bool(
            self._context.distributed.broadcast(self._op is not None and self._metrics is None)
            if self._op is not None
            else False
        )

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
        distributed = self._context.distributed
        stop = self._context.get_stop_requested()
        if distributed.size > 1:
            stop = any(distributed.allgather(stop))
        preempt = self._core.preempt
        preempted = preempt.should_preempt(auto_ack=False)
        if not preempted and not stop:
            return
        self._save()
        if preempted and self._chief:
            preempt.acknowledge_preemption_signal()
        raise Leave

    def _progress(self, goal: Goal, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if (
            not self._chief
            or self._op is None
            or (now - self._progressed_at < PROGRESS_EVERY_S and not at_once)
        ):
            return
        self._progressed_at = now
        size = self._context._settings.known_global_batch_size
        self._op.report_progress(goal.progress(self._steps, self._epoch_length, size))

    # -- a window

    def _train_window(self, goal: Goal) -> list[str]:
        """Train until a boundary; returns those that were reached, in their order."""
        self._status("training")
        context = self._context
        context._reducers.reset()
        for model in context.models:
            model.train()
        reached: list[str] = []
        while not reached:
            self._train_batch()
            reached = self._boundaries(goal)
        self._report_window()
        return reached

    def _train_batch(self) -> None:
        index, length, timed = self._steps, self._epoch_length, self._profiler.timed
        self._profiler.at_batch(index)
        with timed("dataloader_next"):
            batch = next(self._batches)
        self._stepping.batch_idx = index
        epoch = int(index // length)
        if index % length == 0:
            self._callbacks.tell("on_training_epoch_start", epoch)
        if self._profiler.active:
            self._profiler.trained(self._trial.get_batch_length(batch) * self._context.distributed.size)
        if self._context.experimental._auto_to_device:
            with timed("to_device"):
                batch = self._context.to_device(batch)
        with timed("train_batch"):
            metrics = self._trial.train_batch(batch=batch, epoch_idx=epoch, batch_idx=index)
        self._stepping.finish_batch()
        if self._context._torch_profiler is not None:
            self._context._torch_profiler.step()
        if self._context.lr_schedulers:
            with timed("step_lr_schedulers"):
                self._step_schedulers(index)
        with timed("from_device"):
            self._window.add(metrics, index)
        self._counters.batches_trained = index + 1
        if (index + 1) % length == 0:
            self._counters.epochs_trained = epoch + 1
            self._callbacks.tell("on_training_epoch_end", epoch)

    def _step_schedulers(self, index: int) -> None:
        for scheduler in self._context.lr_schedulers:
            for _ in range(scheduler.steps_due(index, self._stepping.aggregation, self._epoch_length)):
                scheduler.step()

    def _boundaries(self, goal: Goal) -> list[str]:
        steps, length = self._counters.batches_trained, self._epoch_length
        reached = []
        if steps >= goal.batches or self._plan.test_mode:
            reached.append("TRAIN")
        for name, period in self._periods:
            if _plan.is_reached(period, steps, length):
                reached.append(name)
        return reached

    def _report_window(self) -> None:
        distributed, timed = self._context.distributed, self._profiler.timed
        with timed("average_training_metrics"):
            averages, batches = self._window.close(distributed)
        with timed("reduce_metrics"):
            averages |= self._context._reducers.reduce_training(distributed.allgather)
        self._counters.step_id += 1
        if self._chief:
            self._core.train.report_training_metrics(self._steps, averages, numbers(batches))
            self._context._events.write_training(self._steps, averages, batches)
            self._profiler.report(self._steps, self._report_series)
        self._callbacks.tell("on_training_workload_end", averages, batches)

    def _report_series(self, group: str, steps: int, metrics: dict[str, Any]) -> None:
        self._core.train._report_trial_metrics(group, steps, metrics)

    # -- validations and checkpoints

    def _validate(self, goal: Goal | None) -> None:
        self._status("validating")
        self._metrics = self._validation.run(1 if self._plan.test_mode else None)
        self._counters.last_val = self._steps
        wanted = False
        if self._metrics is not None:  # on the chief
            wanted = self._report_validation(goal, self._metrics)
        if self._context.distributed.broadcast(wanted):
            self._save()

    def _report_validation(self, goal: Goal | None, metrics: dict[str, Any]) -> bool:
        """Report, tell the search, and say whether the policy wants a checkpoint; chief only."""
        best = self._core.train.get_experiment_best_validation() if self._plan.policy == "best" else None
        self._core.train.report_validation_metrics(self._steps, metrics)
        self._context._events.write_validation(self._steps, metrics)
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
        if math.isnan(value):
            return False
        return best is None or (value < best if self._smaller_is_better else value > best)

    def _save(self) -> None:
        """Unless there is a checkpoint of this step."""
        if self._counters.last_ckpt == self._steps:
            return
        self._status("checkpointing")
        self._counters.last_ckpt = self._steps
        self._saving.save(self._counters)

    def _status(self, text: str) -> None:
        if self._chief and text != self._shown_status:
            self._shown_status = text
            self._core.train.set_status(text)

    def _upload_events(self) -> None:
        events = self._context._events
        if not self._local and events.enabled and events.path.exists():
            events.close()
            self._saving.upload_events()

    def _tracing(self) -> Any:
        profiler = self._context._torch_profiler
        return profiler if profiler is not None else torch.enable_grad()
