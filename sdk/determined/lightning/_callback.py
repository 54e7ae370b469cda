"""Connects Lightning's Trainer to a trial's search, metrics and checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.callbacks import Checkpoint

from determined import _arguments, core
from determined._training.pace import Pace
from determined.core._context import check_context
from determined.lightning._metrics import Metrics
from determined.lightning._stored import Stored

logger = logging.getLogger("determined.lightning")


class DetCallback(Checkpoint):  # type: ignore[misc]
    """Callback for Lightning's Trainer that reports metrics, stores checkpoints and handles preemption.

    Pass `ckpt_path` to `fit()`. Off cluster it does nothing. When the trial is preempted, `fit()` ends as if
    it were complete. `searcher.max_length` counts training batches or epochs; a bare number counts batches.
    The callback ends the training, so give the Trainer `max_epochs=-1` or a large enough number.

    Example:
        ```python
        with det.core.init(distributed=distributed) as core_context:
            callback = DetCallback(core_context)
            trainer = lightning.Trainer(max_epochs=callback.max_epochs or 10, callbacks=[callback])
            trainer.fit(model, data, ckpt_path=callback.ckpt_path)
        ```
    """

    def __init__(self, core_context: core.Context, every_n_epochs: int = 1) -> None:
        """Download the trial's latest checkpoint, and read the search's first request.

        Args:
            core_context: The Core API of this process.
            every_n_epochs: Store a checkpoint every this many epochs. With 0, store one only at the end of
                each search operation and on preemption.

        Raises:
            TypeError: If an argument has the wrong type.
            ValueError: If `searcher.max_length` is in records, which the Trainer does not count.
        """
        super().__init__()
        check_context("core_context", core_context)
        self.core_context = core_context
        self.current_op: core.SearcherOperation | None = None
        self.searcher_metric: str | None = None
        self.searcher_unit = "batches"
        self._every_n_epochs = _arguments.integer("every_n_epochs", every_n_epochs, at_least=0)
        self._batches = 0
        """Number of training batches of the trial so far."""
        self._finished: tuple[int, float | None] = (0, None)
        """Length of the newest operation that was trained to its end, and its metric; on the chief."""
        self._closing = False
        self._leaving = False
        info = core_context.info
        self._trial = info.trial if info is not None and info.task_type == "TRIAL" else None
        self._distributed = core_context.distributed
        self._chief = self._distributed.rank == 0
        self._pace = Pace(self._distributed)
        self._metrics = Metrics(core_context)
        self._stored: Stored | None = None
        self._ops: Iterator[core.SearcherOperation] = iter(())
        if info is not None and self._trial is not None:
            self._stored = Stored(core_context, self._trial.trial_id, info.latest_checkpoint)
            self._ops = iter(core_context.searcher.operations())
            self.current_op = next(self._ops, None)
            self._read_searcher(self._trial._config.get("searcher") or {})

    @property
    def ckpt_path(self) -> str | None:
        """Path of the checkpoint to resume from, for `Trainer.fit()`, or None for a fresh start.

        Example:
            ```python
            trainer.fit(model, data, ckpt_path=callback.ckpt_path)
            ```
        """
        return str(self._stored.resume) if self._stored and self._stored.resume else None

    @property
    def max_epochs(self) -> int | None:
        """-1 on a cluster, where the search decides how far to train; None off cluster.

        Example:
            ```python
            trainer = pl.Trainer(max_epochs=callback.max_epochs or 10, callbacks=[callback])
            ```
        """
        # Lightning's own limit would end the trial at the first operation; -1 means none.
        return -1 if self._trial is not None else None

    def _read_searcher(self, searcher: dict[str, Any]) -> None:
        unit = self.core_context.searcher.get_configured_units()
        self.searcher_unit = "batches" if unit is None else unit.value.lower()
        self.searcher_metric = searcher.get("metric")
        if self.searcher_unit == "records":
            raise ValueError("searcher.max_length in records does not fit Lightning: use batches or epochs")

    # -- what Lightning keeps with a checkpoint

    def state_dict(self) -> dict[str, Any]:
        """Return this callback's state for a checkpoint.

        Returns:
            The number of training batches of the trial so far, and the newest search operation that was
            trained to its end: its length and its metric.

        Example:
            ```python
            checkpoint = torch.load("last.ckpt", weights_only=False)
            print(checkpoint["callbacks"])    # this state is among those of the callbacks
            ```
        """
        return {"batches": self._batches, "finished": self._finished}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned.

        Args:
            state_dict: The stored state.

        Example:
            ```python
            callback.load_state_dict(callback.state_dict())    # fit(ckpt_path=callback.ckpt_path) does this
            ```
        """
        self._batches = state_dict["batches"]
        # Checkpoints of earlier releases do not have it.
        length, metric = state_dict.get("finished", self._finished)
        self._finished = length, metric

    # -- events of the Trainer

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Load another trial's weights if the search starts from that trial's checkpoint.

        Args:
            trainer: The Trainer.
            pl_module: The model that is trained.

        Example:
            ```python
            class WithFrozenBody(DetCallback):
                def on_fit_start(self, trainer, pl_module):
                    super().on_fit_start(trainer, pl_module)    # first: it may load weights
                    pl_module.body.requires_grad_(False)
            ```
        """
        if self._stored is not None:
            self._stored.begin(pl_module)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Complete an operation that is trained already, and stop if the search has no more work.

        Args:
            trainer: The Trainer.
            pl_module: The model that is trained.

        Example:
            ```python
            class Announcing(DetCallback):
                def on_train_start(self, trainer, pl_module):
                    super().on_train_start(trainer, pl_module)
                    if self.current_op is not None:
                        print("train until", self.current_op.length, self.searcher_unit)
            ```
        """
        if self._trial is None:
            return
        # The run before may have ended after it stored the checkpoint, and before it completed the operation.
        if self._is_finished():
            self._complete(trainer)
        if self.current_op is None:
            trainer.should_stop = True

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count the batch, report metrics, and check whether the run should stop.

        Args:
            trainer: The Trainer.
            pl_module: The model that is trained.
            outputs: Not used.
            batch: Not used.
            batch_idx: Not used.

        Example:
            ```python
            class Sparing(DetCallback):
                def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
                    super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)
                    if batch_idx % 100 == 0:
                        torch.cuda.empty_cache()
            ```
        """
        self._batches += 1
        if self._trial is None:
            return
        if self._batches % max(1, trainer.log_every_n_steps) == 0:
            self._metrics.train(trainer, self._batches)
        if self.searcher_unit == "batches" and self._is_reached(self._batches):
            # The Trainer validates before it stops.
            self._closing = trainer.should_stop = True
        elif self._pace.is_due(self._batches):
            self._progress(float(self._batches if self.searcher_unit == "batches" else trainer.current_epoch))
            # At the end of an epoch, preemption is handled after the validation, which would otherwise be
            # skipped.
            if not trainer.is_last_batch:
                self._leave_if_told(trainer)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Remember the current metrics, to recognize those that the validation changes.

        Args:
            trainer: The Trainer.
            pl_module: The model that is trained.

        Example:
            ```python
            class Timed(DetCallback):
                def on_validation_start(self, trainer, pl_module):
                    super().on_validation_start(trainer, pl_module)
                    self.began = time.monotonic()
            ```
        """
        self._metrics.before_validation(trainer)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Report the validation, and complete the operation that is waiting for it.

        Args:
            trainer: The Trainer.
            pl_module: The model that is trained.

        Example:
            ```python
            class Timed(DetCallback):
                def on_validation_end(self, trainer, pl_module):
                    print(f"validated in {time.monotonic() - self.began:.1f} s")
                    super().on_validation_end(trainer, pl_module)
            ```
        """
        # Lightning validates two batches before training, only to see whether the code runs.
        if self._trial is None or trainer.sanity_checking:
            self._metrics.after_validation(trainer)
            return
        self._metrics.validated(trainer, self._batches)
        if self._closing:
            self._finish(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Report the epoch, complete the operation if it is long enough, and store a checkpoint.

        Args:
            trainer: The Trainer.
            pl_module: The model that is trained.

        Example:
            ```python
            class Reshuffled(DetCallback):
                def on_train_epoch_end(self, trainer, pl_module):
                    pl_module.reshuffle()    # before: the checkpoint of this epoch is stored below
                    super().on_train_epoch_end(trainer, pl_module)
            ```
        """
        if self._trial is None or self._leaving:
            return
        self._metrics.train(trainer, self._batches)
        epochs = trainer.current_epoch + 1
        if self._closing or (self.searcher_unit == "epochs" and self._is_reached(epochs)):
            self._finish(trainer)
            return
        if self._every_n_epochs and epochs % self._every_n_epochs == 0:
            self._store(trainer)
        self._leave_if_told(trainer)

    # -- operations

    def _is_reached(self, done: int) -> bool:
        return self.current_op is not None and done >= self.current_op.length

    def _progress(self, done: float) -> None:
        if self._chief and self.current_op is not None:
            self.current_op.report_progress(done)

    def _finish(self, trainer: pl.Trainer) -> None:
        """Store a checkpoint and complete the operation, then continue with the next operation or stop."""
        self._closing = False
        if self.current_op is not None:
            metric = self._metrics.value(str(self.searcher_metric)) if self._chief else None
            self._finished = self.current_op.length, metric
        # In this order: once the operation is complete, the trial may be so as well, and nothing would make
        # up for a checkpoint that is missing.
        self._store(trainer)
        self._complete(trainer)

    def _is_finished(self) -> bool:
        return self.current_op is not None and self.current_op.length <= self._finished[0]

    def _complete(self, trainer: pl.Trainer) -> None:
        if self._chief and self.current_op is not None:
            self.current_op.report_completed(self._finished[1])
        self.current_op = next(self._ops, None)
        trainer.should_stop = self.current_op is None
        self._leaving = self.current_op is None

    # -- preemption and checkpoints

    def _leave_if_told(self, trainer: pl.Trainer) -> None:
        if self.core_context.preempt.should_preempt(auto_ack=False):
            self._leaving = True
            self._store(trainer)
            if self._chief:
                self.core_context.preempt.acknowledge_preemption_signal()
            # Skip the validation that the Trainer would run before stopping: preemption is urgent.
            trainer.limit_val_batches = 0
            trainer.should_stop = True

    def _store(self, trainer: pl.Trainer) -> None:
        if self._stored is not None:
            self._stored.store(trainer, self._batches)
