"""Tells the training loop whether to stop for now (core API spec, section 9)."""

import enum
import logging
from typing import TYPE_CHECKING

from determined import _arguments
from determined.core._checkpoint_background import BackgroundUpload
from determined.core._distributed import DistributedContext, check_ranks
from determined.transport.offline import OfflineTransport

if TYPE_CHECKING:
    from determined.transport.protocol import Transport

logger = logging.getLogger("determined.core")


class PreemptMode(enum.Enum):
    """Which ranks ask the cluster, and how the others learn the answer.

    Example:
        ```python
        with det.core.init(preempt_mode=det.core.PreemptMode.ChiefOnly) as core_context:
            leaving = core_context.distributed.rank == 0 and core_context.preempt.should_preempt()
            leaving = core_context.distributed.broadcast(leaving)
        ```
    """

    WorkersAskChief = "WORKERS_ASK_CHIEF"
    """All ranks call in step and get the chief's answer."""
    ChiefOnly = "CHIEF_ONLY"
    """Only the chief calls; the script informs the other ranks."""
    WorkersAskMaster = "WORKERS_ASK_MASTER"
    """Each rank asks on its own; the answers may arrive at different times."""


class PreemptContext:
    """Tells the script when to release its slots: `core_context.preempt`.

    Example:
        ```python
        for batch in batches:
            train_batch(batch)
            if core_context.preempt.should_preempt():
                save_checkpoint()
                return    # the cluster starts the script again later
        ```
    """

    def __init__(
        self,
        transport: "Transport",
        dist: DistributedContext,
        preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
        uploads: BackgroundUpload | None = None,
    ) -> None:
        """`uploads` are waited for before a preemption is acknowledged."""
        check_ranks("dist", dist)
        self._transport = transport
        self._uploads = uploads or BackgroundUpload()
        self._dist = dist
        self._mode = _arguments.member("preempt_mode", preempt_mode, PreemptMode)
        self._watches = dist.rank == 0 or self._mode is PreemptMode.WorkersAskMaster
        self._started = False
        self._acknowledged = False

    def start(self) -> "PreemptContext":
        """Start watching for preemption.

        Returns:
            This object, for use in a `with` statement.

        Raises:
            RuntimeError: If it was already started.

        Example:
            ```python
            with core_context.preempt:    # calls start() and close(); `with core.init()` does this
                train()
            ```
        """
        if self._started:
            raise RuntimeError("PreemptContext.start() was called twice")
        self._started = True
        return self

    def close(self) -> None:
        """Stop watching. Calling it twice is allowed.

        Example:
            ```python
            preempt = core_context.preempt.start()
            try:
                train(preempt)
            finally:
                preempt.close()
            ```
        """

    def __enter__(self) -> "PreemptContext":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def should_preempt(self, auto_ack: bool = True) -> bool:
        """Return whether to save a checkpoint and exit. Once it returns True, it keeps returning True.

        Call it often: the process already knows the answer, so the call is cheap. If the cluster is
        unreachable, the answer is False.

        Args:
            auto_ack: Whether to acknowledge the first True to the cluster. If False, call
                `acknowledge_preemption_signal()` before exiting; otherwise the cluster takes a clean exit to
                mean that the trial has finished.

        Returns:
            Whether to exit. With `WorkersAskChief`, the default, all ranks get the same answer.

        Raises:
            RuntimeError: If called before `start()`, or on a rank that the mode does not allow.

        Example:
            ```python
            if core_context.preempt.should_preempt():
                save_checkpoint()
                return
            ```
        """
        self._check_caller()
        preempted = self._transport.preempted() if self._watches else False
        if self._mode is PreemptMode.WorkersAskChief:
            # All ranks must call this equally often. Asked one by one, some would leave a step earlier than
            # the others, which would wait for them in the next all-reduce.
            preempted = self._dist.broadcast(preempted)
        # Once, because scripts go on calling this after they were asked to stop.
        if preempted and auto_ack and self._watches and not self._acknowledged:
            self.acknowledge_preemption_signal()
        return bool(preempted)

    def acknowledge_preemption_signal(self) -> None:
        """Tell the cluster that the script is about to exit because of preemption.

        Waits for background checkpoint uploads and for all reports to be stored first.

        Example:
            ```python
            if core_context.preempt.should_preempt(auto_ack=False):
                save_checkpoint()
                core_context.preempt.acknowledge_preemption_signal()
                return
            ```
        """
        # An acknowledged run may exit at any moment, and must not lose an upload that is under way.
        self._uploads.settle()
        self._transport.acknowledge_preemption()
        self._acknowledged = True

    def _check_caller(self) -> None:
        if not self._started:
            raise RuntimeError(
                "cannot call core_context.preempt.should_preempt() before core_context.preempt.start(); "
                "use `with core.init() as core_context`"
            )
        if self._mode is PreemptMode.ChiefOnly and self._dist.rank != 0:
            raise RuntimeError(
                f"core_context.preempt.should_preempt() was called from non-chief rank {self._dist.rank} "
                "although preempt_mode is ChiefOnly"
            )


class DummyPreemptContext(PreemptContext):
    """Never preempts, but keeps the ranks in step as on a cluster."""

    def __init__(
        self, dist: DistributedContext, preempt_mode: PreemptMode = PreemptMode.WorkersAskChief
    ) -> None:
        super().__init__(OfflineTransport(), dist, preempt_mode)
