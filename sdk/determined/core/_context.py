"""The entry point `core.init()` and the context it returns (core API spec, section 4)."""

import atexit
import contextlib
import importlib
import logging
import pathlib
from types import TracebackType
from typing import TYPE_CHECKING, Any

from determined import _arguments, _info
from determined.core import _tensorboard
from determined.core._checkpoint import CheckpointContext, DummyCheckpointContext
from determined.core._checkpoint_background import BackgroundUpload
from determined.core._distributed import DistributedContext, DummyDistributedContext, check_ranks
from determined.core._preempt import DummyPreemptContext, PreemptContext, PreemptMode
from determined.core._searcher import DummySearcherContext, SearcherContext, configured_units
from determined.core._stack_dump import install_stack_dump
from determined.core._storage_choice import chosen_storage, trial_storage
from determined.core._tensorboard import TensorboardMode
from determined.core._train import DummyTrainContext, EarlyExitReason, TrainContext
from determined.errors import InvalidHP
from determined.storage import StorageManager
from determined.transport.offline import OfflineTransport

if TYPE_CHECKING:
    from determined.transport.protocol import Transport

logger = logging.getLogger("determined.core")

Storage = str | dict[str, Any] | None


class Context:
    """The Core API of one process, as returned by `core.init()`. Use it in a `with` statement on every rank.

    Its parts are `train`, `checkpoint`, `searcher`, `preempt` and `distributed`. `info` holds what
    `get_cluster_info()` returns.

    Example:
        ```python
        with det.core.init() as core_context:
            for op in core_context.searcher.operations():
                accuracy = train_and_validate(until=op.length)
                core_context.train.report_validation_metrics(op.length, {"accuracy": accuracy})
                op.report_completed(accuracy)
        ```
    """

    def __init__(
        self,
        checkpoint: CheckpointContext,
        distributed: DistributedContext | None = None,
        preempt: PreemptContext | None = None,
        train: TrainContext | None = None,
        searcher: SearcherContext | None = None,
        info: "_info.ClusterInfo | None" = None,
        transport: "Transport | None" = None,
    ) -> None:
        """Omitted parts default to those of a script that runs off cluster."""
        self.checkpoint = checkpoint
        self.distributed = distributed or DummyDistributedContext()
        self.preempt = preempt or DummyPreemptContext(self.distributed)
        self.train = train or DummyTrainContext()
        self.searcher = searcher or DummySearcherContext(self.distributed)
        self.info = info
        self._transport = transport or OfflineTransport()

    def start(self) -> None:
        """Start watching for preemption. Starting twice raises RuntimeError.

        Raises:
            RuntimeError: If it was already started.

        Example:
            ```python
            core_context = det.core.init()
            core_context.start()  # a `with` block does this, and closes at its end
            ```
        """
        self.preempt.start()

    def close(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        """Stop watching, leave the group of ranks, and wait until all checkpoints and reports are stored.

        Args:
            exc_type: Class of the exception that ends the script, if any.
            exc_val: The exception itself. If given, further errors while closing are only logged.
            exc_tb: Its traceback.

        Raises:
            RuntimeError: A failure that no earlier call has raised: a failed background upload or a refused
                report.

        Example:
            ```python
            try:
                train(core_context)
            finally:
                core_context.close()
            ```
        """
        self._close(exc_val)

    def __enter__(self) -> "Context":
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self._close(exc_val)
        if isinstance(exc_val, InvalidHP):
            # As a success: after a failure, the trial would be restarted with the same hyperparameters.
            raise SystemExit(0)

    def _close(self, error: BaseException | None) -> None:
        """Close all parts, the transport last. Errors raised while closing do not hide `error`."""
        atexit.unregister(self.distributed.close)
        with contextlib.ExitStack() as stack:
            if error is not None:
                stack.push(_log_instead_of_raising)
            # They run from the last to the first, each also if another fails. The transport closes when
            # nothing more can be reported.
            stack.callback(self._transport.close)
            if isinstance(error, InvalidHP):
                stack.callback(self._report_invalid_hp, error)
            stack.callback(self.train._finish)
            stack.callback(self.distributed.close)
            stack.callback(self.checkpoint.wait_for_upload)
            stack.callback(self.preempt.close)

    def _report_invalid_hp(self, error: InvalidHP) -> None:
        self.train.report_early_exit(EarlyExitReason.INVALID_HP)
        logger.info("InvalidHP was raised, this trial ends: %s", error)


def check_context(name: str, context: Any) -> None:
    """Raise TypeError for anything that is not used like a `Context`."""
    _arguments.having(name, context, ("train", "checkpoint", "searcher", "info"), "what core.init() returns")


def _log_instead_of_raising(
    kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
) -> bool:
    if isinstance(error, Exception):
        logger.error("while leaving the core context after another failure: %s", error)
    return isinstance(error, Exception)


def init(
    *,
    distributed: DistributedContext | None = None,
    checkpoint_storage: Storage = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
) -> Context:
    """Return the Core API for this process. Works on a cluster and off it.

    Call it once on every rank, in a `with` statement. Off cluster it does not use the network: reports are
    logged and checkpoints are stored in a local directory of the user.

    Args:
        distributed: This process's place among the processes of the trial. Required with more than one slot.
        checkpoint_storage: Where to store checkpoints instead of the experiment's storage: a path, a URL such
            as `s3://bucket/prefix`, or a mapping as in the experiment configuration.
        preempt_mode: Which ranks ask whether to stop, and how the others learn the answer.
        tensorboard_mode: With `AUTO`, TensorBoard files are uploaded as they grow. With `MANUAL`, the script
            uploads them.

    Returns:
        The context. Its parts are described below.

    Raises:
        ValueError: Without `distributed` on more than one slot, for a storage that makes no sense, or for an
            unknown mode.
        TypeError: For a `distributed` that is no `DistributedContext`.

    Example:
        ```python
        import determined as det

        with det.core.init() as core_context:
            core_context.train.report_training_metrics(steps_completed=1, metrics={"loss": 0.5})
        ```
    """
    tensorboard_mode = _arguments.member("tensorboard_mode", tensorboard_mode, TensorboardMode)
    info = _info.get_cluster_info()
    if info is None:
        return _dummy_init(
            distributed=distributed, checkpoint_storage=checkpoint_storage, preempt_mode=preempt_mode
        )
    if distributed is None and (len(info.container_addrs) > 1 or len(info.slot_ids) > 1):
        raise ValueError("you must provide a valid DistributedContext for a multi-slot task")
    install_stack_dump()
    dist = _context_of_ranks(distributed)
    if info.task_type != "TRIAL":
        return _offline_context(dist, chosen_storage(checkpoint_storage), None, preempt_mode, info)
    return _trial_context(info, dist, trial_storage(info, checkpoint_storage), preempt_mode, tensorboard_mode)


def _trial_context(
    info: "_info.ClusterInfo",
    dist: DistributedContext,
    storage: StorageManager,
    preempt_mode: PreemptMode,
    tensorboard_mode: TensorboardMode,
) -> Context:
    from determined.core._tensorboard_auto import AutomaticTensorboard

    # Imported by name, so that the bus client is loaded only on a cluster.
    bus = importlib.import_module("determined.transport.bus")
    transport: Transport = bus.connect(info)
    trial = info.trial
    path = _tensorboard.tensorboard_path(info.allocation_id)
    target = _tensorboard.stored_under(info.cluster_id, trial.experiment_id, trial.trial_id)
    upload = _tensorboard.TensorboardUpload(storage, path, target, dist.rank)
    by_hand = tensorboard_mode is TensorboardMode.MANUAL
    automatic = None if by_hand or dist.rank != 0 else AutomaticTensorboard(path, upload)
    uploads = BackgroundUpload()
    context = Context(
        checkpoint=CheckpointContext(dist, storage, transport, uploads),
        distributed=dist,
        preempt=PreemptContext(transport, dist, preempt_mode, uploads),
        train=TrainContext(
            transport,
            dist,
            trial_id=trial.trial_id,
            exp_id=trial.experiment_id,
            run_id=trial._trial_run_id,
            tensorboard_path=path,
            tensorboard_upload=upload if by_hand else None,
            tensorboard=automatic,
            searcher_metric=(trial._config.get("searcher") or {}).get("metric"),
        ),
        searcher=SearcherContext(transport, dist, configured_units(trial._config), uploads),
        info=info,
        transport=transport,
    )
    transport.start()
    # Registered after the transport, so it runs first at exit: other ranks need not wait for this rank's
    # pending data.
    atexit.register(dist.close)
    if automatic is not None:
        automatic.start()
    return context


def _offline_context(
    dist: DistributedContext,
    storage: StorageManager,
    tensorboard_path: pathlib.Path | None,
    preempt_mode: PreemptMode,
    info: "_info.ClusterInfo | None",
) -> Context:
    return Context(
        checkpoint=DummyCheckpointContext(dist, storage),
        distributed=dist,
        preempt=DummyPreemptContext(dist, preempt_mode),
        train=DummyTrainContext(tensorboard_path),
        searcher=DummySearcherContext(dist),
        info=info,
    )


def _context_of_ranks(distributed: DistributedContext | None) -> DistributedContext:
    if distributed is None:
        return DummyDistributedContext()
    check_ranks("distributed", distributed)
    return distributed


def _dummy_init(
    *,
    distributed: DistributedContext | None = None,
    checkpoint_storage: Storage = None,
    tensorboard_path: pathlib.Path | None = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
) -> Context:
    """Return the off-cluster Core API, even on a cluster."""
    install_stack_dump()
    dist = _context_of_ranks(distributed)
    storage = chosen_storage(checkpoint_storage)
    return _offline_context(dist, storage, tensorboard_path, preempt_mode, None)
