"""Trains a PyTorchTrial, on a cluster and off it (Trainer spec, section 11)."""

from __future__ import annotations

import logging
from typing import Any

from determined import _arguments
from determined._training import plan as _plan
from determined._training.plan import Plan
from determined._training.units import Batch, TrainUnit
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._loop import Loop
from determined.pytorch._profiler import Profiler
from determined.pytorch._trial import PyTorchTrial, check

logger = logging.getLogger("determined.pytorch")
POLICIES = ("best", "all", "none")
EVERY_100 = Batch(100)


class Trainer:
    """Trains a `PyTorchTrial`. On a cluster the search decides how far; off cluster the script does.

    Example:
        ```python
        with pytorch.init(hparams=hparams) as context:
            trainer = pytorch.Trainer(MyTrial(context), context)
            trainer.fit(max_length=pytorch.Epoch(10), validation_period=pytorch.Epoch(1))
        ```
    """

    def __init__(self, trial: PyTorchTrial, context: PyTorchTrialContext) -> None:
        """Check that the trial can be trained.

        Args:
            trial: The trial.
            context: The context that the trial was made with.

        Raises:
            TypeError: If the trial is not a `PyTorchTrial`, or the context not the one of `pytorch.init()`.
            InvalidExperimentException: If it defines neither or both of `evaluate_batch` and
                `evaluate_full_dataset`.
        """
        self._trial = check(trial)
        if not isinstance(context, PyTorchTrialContext):
            raise TypeError(_arguments.wrong("context", "what pytorch.init() yields", context))
        self._context = context
        self._local = not context._on_cluster
        self._profiler = Profiler()

    def configure_profiler(
        self,
        sync_timings: bool,
        enabled: bool,
        begin_on_batch: int,
        end_after_batch: int | None,
    ) -> None:
        """Profile the parts of the training loop and the load of the machine, for at most five minutes.

        Off cluster it only logs a warning. The last call before `fit()` applies.

        Args:
            sync_timings: Whether to wait for the GPU before each measurement, so that times are those of the
                work and not of its submission.
            enabled: False to measure nothing.
            begin_on_batch: Index of the first batch that is measured.
            end_after_batch: Index of the last batch that is measured; None for no end but the five minutes.

        Raises:
            TypeError: If one of the two is no integer.
            ValueError: If `begin_on_batch` is negative or after `end_after_batch`.

        Example:
            ```python
            trainer.configure_profiler(
                enabled=True, sync_timings=True, begin_on_batch=10, end_after_batch=100
            )
            trainer.fit(max_length=pytorch.Epoch(1))
            ```
        """
        _arguments.integer("begin_on_batch", begin_on_batch, at_least=0)
        if end_after_batch is not None:
            _arguments.integer("end_after_batch", end_after_batch, at_least=begin_on_batch)
        if self._local:
            logger.warning("configure_profiler() has no effect off cluster")
            return
        self._profiler = Profiler(enabled, begin_on_batch, end_after_batch, sync_timings)

    def fit(
        self,
        checkpoint_period: TrainUnit | None = None,
        validation_period: TrainUnit | None = None,
        max_length: TrainUnit | None = None,
        reporting_period: TrainUnit = EVERY_100,
        checkpoint_policy: str = "best",
        latest_checkpoint: str | None = None,
        step_zero_validation: bool = False,
        test_mode: bool = False,
    ) -> None:
        """Train, validating and storing checkpoints along the way.

        On a cluster it trains as far as the search asks; off cluster, until `max_length`. Training always
        ends with a validation and a checkpoint. On preemption, a checkpoint is stored and `fit()` returns.

        Args:
            checkpoint_period: Store a checkpoint every this many batches or epochs. None: only at the end.
            validation_period: Validate every this many batches or epochs. None: only at the end.
            max_length: How far to train off cluster, counted from the start of the trial. On a cluster it is
                ignored with a warning, because the search decides.
            reporting_period: Report training metrics every this many batches or epochs.
            checkpoint_policy: Whether a validation is followed by a checkpoint: if it is the `best` so far,
                always (`all`), or never (`none`). Off cluster `best` means `all`.
            latest_checkpoint: Id of the checkpoint to continue from; on a cluster, `info.latest_checkpoint`.
                Without it, a trial that is paused and resumed starts with fresh weights.
            step_zero_validation: Whether to validate before the first batch.
            test_mode: Train on one batch, validate on one batch, store a checkpoint and return. Off cluster
                only.

        Raises:
            ValueError: `max_length` is missing off cluster; `test_mode` on a cluster; an unknown
                `checkpoint_policy`.
            TypeError: A period or length is neither a `pytorch.Batch` nor a `pytorch.Epoch`, or
                `latest_checkpoint` is no text.
            InvalidExperimentException: The trial has wrapped no model or no optimizer.
            RuntimeError: A data loader cannot be continued, or gives no batch; or the metric of the search is
                not among those of the validation.

        Example:
            ```python
            trainer = pytorch.Trainer(MyTrial(context), context)
            trainer.fit(
                max_length=pytorch.Epoch(4),
                validation_period=pytorch.Epoch(1),
                checkpoint_period=pytorch.Batch(500),
            )
            ```
        """
        if latest_checkpoint is not None:
            _arguments.text("latest_checkpoint", latest_checkpoint, "the id of a checkpoint (str), or None")
        self._warn(latest_checkpoint)
        plan = Plan(
            checkpoint_period=_plan.checked(checkpoint_period, "checkpoint_period"),
            validation_period=_plan.checked(validation_period, "validation_period"),
            reporting_period=_plan.checked(reporting_period, "reporting_period"),
            max_length=self._length(max_length, test_mode),
            policy=self._policy(checkpoint_policy),
            latest_checkpoint=latest_checkpoint,
            step_zero_validation=step_zero_validation,
            test_mode=test_mode,
        )
        self._train(plan)

    def _train(self, plan: Plan) -> None:
        Loop(self._trial, self._context, plan, self._profiler, self._local).run()

    def _length(self, max_length: Any, test_mode: bool) -> TrainUnit | None:
        if not self._local:
            if test_mode:
                raise ValueError("test_mode is for local training only")
            if max_length is not None:
                logger.warning("max_length is ignored on a cluster: the search decides how far to train")
            return None
        if max_length is None:
            raise ValueError("max_length is needed off cluster: pass fit(max_length=pytorch.Epoch(1))")
        length = _plan.checked(max_length, "max_length")
        # Raises for a list, which may name periods but no length.
        length.length()
        return length

    def _policy(self, policy: str) -> Any:
        if policy not in POLICIES:
            raise ValueError(_arguments.wrong("checkpoint_policy", f"one of {', '.join(POLICIES)}", policy))
        if self._local and policy == "best":
            logger.info("off cluster checkpoint_policy 'best' stores a checkpoint after every validation")
            # There is no cluster that knows the best validation of the experiment.
            return "all"
        return policy

    def _warn(self, latest_checkpoint: str | None) -> None:
        info = self._context._core.info
        if self._local or latest_checkpoint is not None or info is None:
            return
        if info.latest_checkpoint is not None:
            logger.warning(
                "the cluster has checkpoint %s of this trial, but fit() was called without "
                "latest_checkpoint: pausing and resuming will not work",
                info.latest_checkpoint,
            )
