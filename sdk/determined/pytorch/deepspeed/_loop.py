"""Trains a DeepSpeedTrial, in batches of micro batches that the engines count."""

from __future__ import annotations

import logging
import math
import pathlib
from typing import Any

import torch

from determined._training.loop import BoundaryLoop
from determined._training.plan import Plan
from determined.errors import InvalidExperimentException
from determined.pytorch._callback import Callbacks
from determined.pytorch._profiler import Profiler
from determined.pytorch._window import numbers
from determined.pytorch.deepspeed import _metrics
from determined.pytorch.deepspeed._checkpoint import Saving
from determined.pytorch.deepspeed._context import DeepSpeedTrialContext
from determined.pytorch.deepspeed._data import Source
from determined.pytorch.deepspeed._trial import DeepSpeedTrial

logger = logging.getLogger("determined.pytorch.deepspeed")
ALL_RANKS_COMPUTE_TOGETHER = 3
"""From this ZeRO stage on, a forward pass needs every rank."""


class DeepSpeedLoop(BoundaryLoop):
    """Trains one DeepSpeedTrial once."""

    def __init__(
        self, trial: DeepSpeedTrial, context: DeepSpeedTrialContext, plan: Plan, local: bool
    ) -> None:
        if not context.models:
            raise InvalidExperimentException(
                f"{type(trial).__name__} wraps no engine: call context.wrap_model_engine() in its __init__"
            )
        super().__init__(context._core, plan, context._settings, local)
        self._trial = trial
        self._context = context
        self._calls: list[dict[str, Any]] = []
        self._micro = context.num_micro_batches_per_slot
        self._reports = context._mpu.should_report_metrics
        options = (context._settings.exp_conf or {}).get("optimizations") or {}
        self._average = bool(options.get("average_training_metrics", True))

    def run(self) -> None:
        """Train until the search ends."""
        self._callbacks = Callbacks(self._trial.build_callbacks(), Profiler().timed)
        self._saving = Saving(self._trial, self._context, self._callbacks, self._local)
        super().run()

    def _prepare(self) -> None:
        context, plan = self._context, self._plan
        self._callbacks.tell("on_trial_startup", context._steps_completed, plan.latest_checkpoint)
        training = Source(context, self._trial.build_training_data_loader, "build_training_data_loader")
        self._validation = Source(
            context, self._trial.build_validation_data_loader, "build_validation_data_loader"
        )
        self._epoch_length = self._length_of_an_epoch(training)
        context._epoch_len = int(self._epoch_length) if math.isfinite(self._epoch_length) else None
        if plan.latest_checkpoint is not None:
            counters = self._saving.load(plan.latest_checkpoint)
            self._resume_counters(counters, context._steps_completed)
        context._index = self._steps - 1
        self._batches = training.endless(self._steps * self._micro, self._seed())
        self._callbacks.tell("on_training_start")

    def _length_of_an_epoch(self, training: Source) -> float:
        shortest = training.shortest()
        if math.isfinite(shortest) and shortest < self._micro:
            raise InvalidExperimentException(
                f"the training data has {shortest:.0f} micro batches on a slot, fewer than the {self._micro} "
                "that make a batch (gradient_accumulation_steps)"
            )
        return float(shortest // self._micro) if math.isfinite(shortest) else math.inf

    def _seed(self) -> int:
        seed = self._settings.trial_seed
        return int(self._distributed.broadcast(torch.initial_seed()) if seed is None else seed)

    # -- a window

    def _begin_window(self) -> None:
        self._calls = []
        self._context._reducers.reset()
        for engine in self._context.models:
            engine.train()

    def _train_batch(self) -> None:
        context, index, length = self._context, self._steps, self._epoch_length
        epoch = int(index // length)
        context._index = index
        if index % length == 0:
            self._callbacks.tell("on_training_epoch_start", epoch)
        once = context.use_pipeline_parallel or context._manual
        for _ in range(1 if once else self._micro):
            returned = self._trial.train_batch(self._batches, epoch_idx=epoch, batch_idx=index)
            self._calls.append(_metrics.detached(returned, "train_batch", self._calls))
        self._check_engines()
        self._counters.batches_trained = index + 1
        if (index + 1) % length == 0:
            self._counters.epochs_trained = epoch + 1
            self._callbacks.tell("on_training_epoch_end", epoch)

    def _check_engines(self) -> None:
        for index, engine in enumerate(self._context.models):
            steps = engine.gradient_accumulation_steps()
            if engine.micro_steps % steps:
                raise AssertionError(
                    f"engine {index} has trained {engine.micro_steps} micro batches after a batch, not a "
                    f"multiple of its gradient_accumulation_steps, {steps}: call backward() and step() once "
                    "in each train_batch(), or disable_auto_grad_accumulation() and train them all in it"
                )

    def _report_window(self) -> None:
        distributed = self._distributed
        calls = _metrics.of_all_ranks(self._calls if self._reports else None, distributed, self._average)
        averages = _metrics.averages(calls)
        averages |= self._context._reducers.reduce_training(distributed.allgather)
        if self._chief:
            self._core.train.report_training_metrics(self._steps, averages, numbers(calls))
            self._context._events.write_training(self._steps, averages, calls)
        self._callbacks.tell("on_training_workload_end", averages, calls)

    # -- validations

    @torch.no_grad()
    def _evaluate(self, most_batches: int | None) -> dict[str, Any] | None:
        self._context._reducers.reset()
        for engine in self._context.models:
            engine.eval()
        self._callbacks.tell("on_validation_start")
        self._callbacks.tell("on_validation_epoch_start")
        batches = self._validation.once()
        calls: _metrics.Calls = []
        for index in range(self._evaluations(most_batches)):
            returned = self._trial.evaluate_batch(batches, index)
            calls.append(_metrics.detached(returned, "evaluate_batch", calls))
        self._callbacks.tell("on_validation_epoch_end", calls)
        metrics = _metrics.mean_of_calls(calls if self._reports else None, self._distributed)
        metrics |= self._context._reducers.reduce_validation(self._distributed.allgather)
        self._callbacks.tell("on_validation_end", metrics)
        return metrics if self._chief else None

    def _evaluations(self, most: int | None) -> int:
        """Return the number of `evaluate_batch` calls on this rank. Pipelines and ZeRO 3 need the same."""
        source, pipeline = self._validation, self._context.use_pipeline_parallel
        stages = [engine.zero_optimization_stage() for engine in self._context.models]
        together = pipeline or max(stages) >= ALL_RANKS_COMPUTE_TOGETHER or not source.everywhere()
        shortest = source.shortest()
        length = shortest if together else source.own_length()
        if not math.isfinite(length):
            raise InvalidExperimentException("the validation data loader has no length: give it one")
        if together and source.own_length() not in (length, math.inf):
            logger.warning("validation skips the batches that other ranks have no counterpart for")
        calls = int(length) // self._micro if pipeline else int(length)
        if pipeline and not calls:
            raise InvalidExperimentException(
                f"the validation data has {int(length)} micro batches, a pipeline needs {self._micro} or more"
            )
        if pipeline and int(length) % self._micro:
            logger.warning("validation skips %d micro batches", int(length) % self._micro)
        return min(calls, most) if most is not None else calls

    # -- the rest

    def _write(self, *, alone: bool = False) -> None:
        # All ranks write DeepSpeed's checkpoints together: parts of the state are only on one of them.
        if not alone or self._distributed.size == 1:
            self._saving.save(self._counters)

    def _stop_requested(self) -> bool:
        return self._context.get_stop_requested()

    def _write_validation_events(self, metrics: dict[str, Any]) -> None:
        self._context._events.write_validation(self._steps, metrics)

    def _upload_events(self) -> None:
        events = self._context._events
        if self._local or not events.enabled or not events.path.exists():
            return
        events.close()

        def wanted(path: pathlib.Path) -> bool:
            return self._chief or "tfevents" not in path.name

        self._core.train.upload_tensorboard_files(wanted)

    def _shut_down(self) -> None:
        try:
            self._callbacks.shut_down()
        finally:
            self._context._events.close()
