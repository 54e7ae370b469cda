"""Connects Hugging Face's Trainer to a trial's search, metrics and checkpoints."""

from __future__ import annotations

import json
import logging
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import transformers

from determined import _arguments, core
from determined._training.pace import Pace
from determined._training.rank_checkpoints import RankCheckpoints
from determined.core._context import check_context
from determined.transformers import _folders
from determined.transformers._weights import restore_renamed

logger = logging.getLogger("determined.transformers")
USER_DATA = "my_data.json"
TRAINING, VALIDATION = "training", "validation"


class DetCallback(transformers.TrainerCallback):  # type: ignore[misc]
    """Callback for Hugging Face's Trainer that reports metrics, stores checkpoints and handles preemption.

    It also resumes from the latest checkpoint. Create it before the Trainer, and pass
    `args.resume_from_checkpoint` to `train()`. Off cluster it does nothing. When the trial is preempted,
    `train()` ends as if it were complete.

    Example:
        ```python
        with det.core.init(distributed=distributed) as core_context:
            callback = DetCallback(core_context, training_args)
            trainer = Trainer(model, training_args, train_dataset=data, callbacks=[callback])
            trainer.train(resume_from_checkpoint=training_args.resume_from_checkpoint)
        ```
    """

    def __init__(
        self,
        core_context: core.Context,
        args: transformers.TrainingArguments,
        filter_metrics: Sequence[str] | None = None,
        user_data: dict[str, Any] | None = None,
    ) -> None:
        """Download the trial's latest checkpoint, and read the search's first request.

        Args:
            core_context: The Core API of this process.
            args: The Trainer's arguments. `resume_from_checkpoint` is set if there is a checkpoint.
            filter_metrics: Report only metrics whose names contain one of these strings.
            user_data: Stored as `my_data.json` with each checkpoint. Without a JSON form, override
                `_on_save_user_data(save_path)`, which rank 0 calls with the folder of the checkpoint.

        Raises:
            TypeError: If an argument has the wrong type.
            ValueError: If `searcher.max_length` is in records, which the Trainer does not count.
        """
        super().__init__()
        check_context("core_context", core_context)
        self.core_context = core_context
        self.current_op: core.SearcherOperation | None = None
        self.last_metrics: dict[str, Any] = {}
        self.searcher_metric: str | None = None
        self.searcher_unit: str | None = None
        self.searcher_max_length: int | None = None
        if isinstance(filter_metrics, str) or not hasattr(filter_metrics or (), "__iter__"):
            raise TypeError(_arguments.wrong("filter_metrics", "a list of texts, or None", filter_metrics))
        self.filter_metrics = list(filter_metrics or ())
        self.user_data = user_data
        info = core_context.info
        self._trial = info.trial if info is not None and info.task_type == "TRIAL" else None
        self._distributed = core_context.distributed
        self._chief = self._distributed.rank == 0
        self._pace = Pace(self._distributed)
        self._checkpoints = RankCheckpoints(core_context, self._trial.trial_id if self._trial else 0)
        self._arrived: dict[str, int] = {}
        """Kind of metrics -> the step they were last logged at."""
        self._closing = False
        self._preempted = False
        self._saved_at = -1
        self._resumed: pathlib.Path | None = None
        self._ops: Iterator[core.SearcherOperation] = iter(())
        if self._trial is not None:
            self.load_last_checkpoint(args)
            self._ops = iter(core_context.searcher.operations())
            self.current_op = next(self._ops, None)
            self._read_searcher(args, self._trial._config.get("searcher") or {})

    # -- construction

    def load_last_checkpoint(self, args: transformers.TrainingArguments) -> None:
        """Download the trial's latest checkpoint and set `args.resume_from_checkpoint` to it.

        The constructor does this. Call it again, on every rank, only if you use other arguments.

        Args:
            args: The Trainer's arguments. The checkpoint is downloaded to `output_dir`.

        Example:
            ```python
            callback.load_last_checkpoint(args)
            trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)
            ```
        """
        info = self.core_context.info
        if info is not None and self._trial is not None:
            self._fetch(args, info.latest_checkpoint)

    def _fetch(self, args: transformers.TrainingArguments, uuid: str | None) -> None:
        # transformers 5 has removed this argument.
        if uuid is None or getattr(args, "overwrite_output_dir", False):
            return
        folder = pathlib.Path(str(args.output_dir))
        stored: set[str] = set()

        def is_wanted(path: str) -> bool:
            stored.add(path.partition("/")[0])
            return True

        self.core_context.checkpoint.download(uuid, folder, selector=is_wanted)
        newest_folder = _folders.newest(folder, stored)
        if newest_folder is None:
            logger.warning(
                "checkpoint %s holds no folder %sN: training starts from the beginning", uuid, _folders.PREFIX
            )
            return
        self._resumed = self._for_this_trial(uuid, newest_folder)
        args.resume_from_checkpoint = str(self._resumed)

    def _for_this_trial(self, uuid: str, stored: pathlib.Path) -> pathlib.Path:
        """Return the checkpoint to resume from. Of another trial's checkpoint, only the weights are used."""
        if self._checkpoints.is_own(uuid):
            return stored
        weights_only = stored.with_name(f"{_folders.PREFIX}0")
        if self._distributed.local_rank == 0:
            _folders.keep_weights_only(stored)
        # No rank may read the checkpoint while another changes it.
        self._distributed.allgather(None)
        return weights_only

    def _read_searcher(self, args: transformers.TrainingArguments, searcher: dict[str, Any]) -> None:
        unit = self.core_context.searcher.get_configured_units()
        # A bare number counts steps, and so does a custom search.
        self.searcher_unit = "batches" if unit is None else unit.value.lower()
        self.searcher_metric = searcher.get("metric")
        length = searcher.get("max_length")
        if isinstance(length, dict):
            length = next(iter(length.values()))
        if length is None and self.current_op is not None:
            length = self.current_op.length
        self.searcher_max_length = length
        if self.searcher_unit == "records":
            raise ValueError("searcher.max_length in records does not fit the Trainer: use batches or epochs")

    def _compare(self, args: transformers.TrainingArguments) -> None:
        length = self.searcher_max_length
        if self.searcher_unit == "batches" and args.max_steps != length:
            logger.warning("searcher.max_length is %s batches, but max_steps is %s", length, args.max_steps)
        elif self.searcher_unit == "epochs" and (args.num_train_epochs, args.max_steps) != (length, -1):
            logger.warning(
                "searcher.max_length is %s epochs, but num_train_epochs is %s and max_steps %s",
                *(length, args.num_train_epochs, args.max_steps),
            )

    # -- events of the Trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Restore what the previous run logged at this step.

        Args:
            args: The Trainer's arguments.
            state: The Trainer's state.
            control: The Trainer's control flags, which are set here.
            model: The model that is trained.
            **kwargs: Not used.

        Example:
            ```python
            class Announcing(DetCallback):
                def on_train_begin(self, args, state, control, **kwargs):
                    super().on_train_begin(args, state, control, **kwargs)
                    print("training from step", state.global_step)
            ```
        """
        if self._trial is None:
            return
        # Not in the constructor: a script may set the arguments to `searcher_max_length`.
        self._compare(args)
        if self._resumed is not None and model is not None:
            restore_renamed(model, self._resumed)
        # The run before may have ended between the last report and the completion.
        for logs in state.log_history:
            if logs.get("step") == state.global_step:
                self._note(logs, state.global_step)
        while self._is_reached(state) and self._has_all(args, state):
            self._finish(state, control)
        if self.current_op is None:
            control.should_training_stop = True

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any
    ) -> None:
        """Report metrics, once per kind and step.

        Args:
            args: The Trainer's arguments.
            state: The Trainer's state.
            control: The Trainer's control flags, which are set here.
            logs: The metrics that the Trainer logs.
            **_: Not used.

        Example:
            ```python
            # Of what the Trainer logs, report what has "loss" or "accuracy" in its name:
            callback = DetCallback(core_context, args, filter_metrics=["loss", "accuracy"])
            ```
        """
        if self._trial is None or not logs:
            return
        kind = _kind(logs)
        if kind is None:
            return
        # Each kind is reported once per step: the Trainer logs a step again when a run resumes at it.
        new = self._arrived.get(kind) != state.global_step
        self._note(logs, state.global_step)
        if new:
            self._report(kind, logs, state.global_step)
        if self._closing:
            if self._has_all(args, state):
                self._finish(state, control)
        elif kind == TRAINING:
            self._look(control)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Report progress, check for preemption, and complete the operation if it is long enough.

        Args:
            args: The Trainer's arguments.
            state: The Trainer's state.
            control: The Trainer's control flags, which are set here.
            **kwargs: Not used.

        Example:
            ```python
            class Callback(DetCallback):
                def on_step_end(self, args, state, control, **kwargs):
                    super().on_step_end(args, state, control, **kwargs)
                    self.core_context.train.set_status(f"step {state.global_step}")
            ```
        """
        if self._trial is None:
            return
        due = self._pace.is_due(state.global_step)
        if due and self._chief and self.current_op is not None:
            self.current_op.report_progress(self._done(state))
        if self.searcher_unit == "batches":
            self._close_if_reached(args, state, control)
        if due and not self._closing:
            self._look(control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Complete the operation if it is long enough, for lengths in epochs.

        Args:
            args: The Trainer's arguments.
            state: The Trainer's state.
            control: The Trainer's control flags, which are set here.
            **kwargs: Not used.
        """
        if self._trial is not None and self.searcher_unit == "epochs":
            self._close_if_reached(args, state, control)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Store the Trainer's checkpoint. If the trial is preempted, stop afterwards.

        Args:
            args: The Trainer's arguments.
            state: The Trainer's state.
            control: The Trainer's control flags, which are set here.
            **kwargs: Not used.

        Example:
            ```python
            args = transformers.TrainingArguments("out", save_strategy="epoch")    # calls this once per epoch
            ```
        """
        if self._trial is None:
            return
        if self._saved_at != state.global_step:
            self._saved_at = state.global_step
            self._upload(pathlib.Path(args.output_dir), state.global_step)
        if self._preempted or self.core_context.preempt.should_preempt(auto_ack=False):
            if self._chief:
                self.core_context.preempt.acknowledge_preemption_signal()
            control.should_training_stop = True

    # -- metrics

    def _note(self, logs: dict[str, Any], step: int) -> None:
        kind = _kind(logs)
        if kind is not None:
            self._arrived[kind] = step
            self.last_metrics.update(logs)

    def _report(self, kind: str, logs: dict[str, Any], step: int) -> None:
        if not self._chief:
            return
        wanted = self.filter_metrics
        metrics = {k: v for k, v in logs.items() if not wanted or any(part in k for part in wanted)}
        if not metrics:
            return
        if kind == TRAINING:
            self.core_context.train.report_training_metrics(step, metrics)
        else:
            self.core_context.train.report_validation_metrics(step, metrics)

    # -- operations

    def _close_if_reached(self, args: Any, state: Any, control: Any) -> None:
        if not self._is_reached(state):
            return
        if self._chief and self.current_op is not None:
            self.current_op.report_progress(self.current_op.length)
        self._closing = True
        if self._has_all(args, state):
            self._finish(state, control)
        else:
            # The completion needs metrics of this very step, for which the Trainer has to be asked.
            control.should_log = True
            control.should_evaluate = self._needs_evaluation(args, state)
        control.should_save = control.should_save or self._saved_at != state.global_step

    def _done(self, state: Any) -> float:
        return float(state.global_step if self.searcher_unit == "batches" else state.epoch or 0)

    def _is_reached(self, state: Any) -> bool:
        # The tolerance covers rounding: the Trainer accumulates fractions of epochs.
        return self.current_op is not None and self._done(state) >= self.current_op.length - 1e-6

    def _needs_evaluation(self, args: Any, state: Any) -> bool:
        if self._arrived.get(VALIDATION) == state.global_step:
            return False
        strategy = getattr(args, "eval_strategy", None) or getattr(args, "evaluation_strategy", "no")
        # If there is no evaluation, the searcher metric may be a training metric.
        return not (
            str(getattr(strategy, "value", strategy)) == "no" and self.searcher_metric in self.last_metrics
        )

    def _has_all(self, args: Any, state: Any) -> bool:
        trained = self._arrived.get(TRAINING) == state.global_step
        return trained and not self._needs_evaluation(args, state)

    def _finish(self, state: Any, control: Any) -> None:
        """Complete the operation, then fetch the next one or stop."""
        self._closing = False
        if self._chief and self.current_op is not None:
            self.current_op.report_completed(self._value(state))
        self.current_op = next(self._ops, None)
        if self.current_op is None:
            control.should_training_stop = True

    def _value(self, state: Any) -> Any:
        if self.searcher_metric in self.last_metrics:
            return self.last_metrics[str(self.searcher_metric)]
        logger.warning(
            "the searcher's metric '%s' was never logged, there are: %s; the Trainer's best metric is used",
            *(self.searcher_metric, ", ".join(sorted(self.last_metrics))),
        )
        return state.best_metric

    # -- preemption and checkpoints

    def _look(self, control: Any) -> None:
        """On preemption, request a checkpoint. Training stops once it is stored."""
        # Not acknowledged yet: a run that has acknowledged may be ended before its checkpoint is stored.
        self._preempted = self._preempted or self.core_context.preempt.should_preempt(auto_ack=False)
        if self._preempted:
            # The Trainer writes a checkpoint at the end of this step and calls `on_save`, which ends the run.
            control.should_save = True

    def _upload(self, folder: pathlib.Path, steps: int) -> None:
        if self._chief and self.user_data is not None:
            self._on_save_user_data(str(folder / f"{_folders.PREFIX}{steps}"))
        self._checkpoints.store(folder, steps, selector=lambda path: _folders.belongs(path, steps))

    def _on_save_user_data(self, save_path: str) -> None:
        """Write `user_data` into the folder of a checkpoint; subclasses override it, as in 0.25."""
        pathlib.Path(save_path, USER_DATA).write_text(json.dumps(self.user_data))


def _kind(logs: dict[str, Any]) -> str | None:
    """Return the kind of metrics, judged by the first name, or None if they are not reported."""
    first = next(iter(logs), "")
    if first.startswith("eval_"):
        return VALIDATION
    # Final results of `predict` and summaries of the whole training, which belong to no step.
    return None if first.startswith(("test_", "train_")) else TRAINING
