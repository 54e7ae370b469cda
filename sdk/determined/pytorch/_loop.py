"""Trains a PyTorchTrial (Trainer spec, section 9)."""

from __future__ import annotations

import math
from typing import Any

import torch

from determined._training.loop import BoundaryLoop
from determined._training.plan import Plan
from determined.errors import InvalidExperimentException
from determined.pytorch._callback import Callbacks
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._feed import Feed, Passes
from determined.pytorch._profiler import Profiler
from determined.pytorch._saving import Saving
from determined.pytorch._trial import PyTorchTrial, evaluates_batches
from determined.pytorch._validation import Validation
from determined.pytorch._window import Window, numbers


class Loop(BoundaryLoop):
    """Trains one PyTorchTrial once."""

    def __init__(
        self, trial: PyTorchTrial, context: PyTorchTrialContext, plan: Plan, profiler: Profiler, local: bool
    ) -> None:
        if not context.models or not context.optimizers:
            raise InvalidExperimentException(
                f"{type(trial).__name__} wraps {len(context.models)} models and {len(context.optimizers)} "
                "optimizers: call context.wrap_model() and context.wrap_optimizer() in its __init__"
            )
        super().__init__(context._core, plan, context._settings, local)
        self._trial = trial
        self._context = context
        self._profiler = profiler
        self._stepping = context._stepping
        self._stepping.timed = profiler.timed
        self._window = Window()

    def run(self) -> None:
        """Run the complete training."""
        self._callbacks = Callbacks(self._trial.build_callbacks(), self._profiler.timed)
        self._saving = Saving(self._trial, self._context, self._callbacks, self._plan, self._local)
        super().run()

    def _shut_down(self) -> None:
        try:
            self._callbacks.shut_down()
        finally:
            self._context._events.close()

    def _stop_requested(self) -> bool:
        return self._context.get_stop_requested()

    def _prepare(self) -> None:
        context, callbacks = self._context, self._callbacks
        start = self._saving.steps_before()
        callbacks.tell("on_trial_startup", start, self._plan.latest_checkpoint)
        # After `on_trial_startup`, where callbacks may prepare what the loaders read.
        self._feed = Feed(self._trial.build_training_data_loader(), context)
        passes = Passes(self._trial.build_validation_data_loader(), self._trial, context)
        by_batch = evaluates_batches(self._trial)
        # `evaluate_full_dataset` runs on the chief alone and gets all data at once.
        loader = passes if by_batch or not self._chief else passes.whole()
        self._validation = Validation(self._trial, context, callbacks, loader)
        self._epoch_length = self._feed.epoch_length
        context._epoch_len = int(self._epoch_length) if math.isfinite(self._epoch_length) else None
        self._resume()
        # Off cluster it is known only from the checkpoint.
        context._steps_completed = self._steps
        if self._steps:
            # Resumed within a group of accumulated batches, the optimizer steps where it would have stepped.
            self._stepping.batch_idx = self._steps - 1
        self._batches = self._feed.start(self._steps, self._saving.seed)
        callbacks.tell("on_training_start")

    def _resume(self) -> None:
        checkpoint = self._saving.load()
        if checkpoint is None:
            return
        own = self._resume_counters(checkpoint.counters, self._context._steps_completed)
        # On a cluster the seed is the trial's. A local run goes on in the order of the run that it resumes.
        if own and self._local:
            self._saving.seed = checkpoint.resume.get("seed", self._saving.seed)

    # -- a window

    def _begin_window(self) -> None:
        self._context._reducers.reset()
        for model in self._context.models:
            model.train()

    def _train_batch(self) -> None:
        index, length, timed = self._steps, self._epoch_length, self._profiler.timed
        self._profiler.at_batch(index)
        with timed("dataloader_next"):
            batch = next(self._batches)
        self._stepping.batch_idx = index
        # An unknown length is infinite: then every batch belongs to epoch 0.
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
            # Several times after the last batch of a group, once for each of its batches.
            for _ in range(scheduler.steps_due(index, self._stepping.aggregation, self._epoch_length)):
                scheduler.step()

    def _report_window(self) -> None:
        distributed, timed = self._context.distributed, self._profiler.timed
        with timed("average_training_metrics"):
            averages, batches = self._window.close(distributed)
        with timed("reduce_metrics"):
            averages |= self._context._reducers.reduce_training(distributed.allgather)
        if self._chief:
            self._core.train.report_training_metrics(self._steps, averages, numbers(batches))
            self._context._events.write_training(self._steps, averages, batches)
            self._profiler.report(self._steps, self._report_series)
        self._callbacks.tell("on_training_workload_end", averages, batches)

    def _report_series(self, group: str, steps: int, metrics: dict[str, Any]) -> None:
        self._core.train._report_trial_metrics(group, steps, metrics)

    # -- validations and checkpoints

    def _evaluate(self, most_batches: int | None) -> dict[str, Any] | None:
        return self._validation.run(most_batches)

    def _write(self, *, alone: bool = False) -> None:
        self._saving.save(self._counters, alone=alone)

    def _write_validation_events(self, metrics: dict[str, Any]) -> None:
        self._context._events.write_validation(self._steps, metrics)

    def _upload_events(self) -> None:
        events = self._context._events
        if not self._local and events.enabled and events.path.exists():
            # Closed, so that all events are in the file that is uploaded; the next event begins a new file.
            events.close()
            self._saving.upload_events()

    def _tracing(self) -> Any:
        profiler = self._context._torch_profiler
        return profiler if profiler is not None else torch.enable_grad()
