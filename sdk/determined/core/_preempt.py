"""Whether training should stop for now, the same answer on every rank (core API spec, section 9)."""

import enum
import logging
from typing import TYPE_CHECKING

from determined.core._checkpoint_background import BackgroundUpload
from determined.core._distributed import DistributedContext
from determined.transport.offline import OfflineTransport

if TYPE_CHECKING:
    from determined.transport.protocol import Transport

logger = logging.getLogger("determined.core")


class PreemptMode(enum.Enum):
    """Which rank asks, and how the others learn the answer."""

    WorkersAskChief = "WORKERS_ASK_CHIEF"
    """All ranks call in step and get the chief's answer."""
    ChiefOnly = "CHIEF_ONLY"
    """Only the chief calls; the script tells the others."""
    WorkersAskMaster = "WORKERS_ASK_MASTER"
    """Every rank asks on its own; the answers may come at different times."""


class PreemptContext:
    """Says when to give the slots back: `core_context.preempt`."""

    def __init__(
        self,
        transport: "Transport",
        dist: DistributedContext,
        preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
        uploads: BackgroundUpload | None = None,
    ) -> None:
        """`uploads` are to be over before a preemption is acknowledged."""
        self._transport = transport
        self._uploads = uploads or BackgroundUpload()
        self._dist = dist
        self._mode = PreemptMode(preempt_mode)
        self._watches = dist.rank == 0 or self._mode is PreemptMode.WorkersAskMaster
        self._started = False
        self._acknowledged = False

    def start(self) -> "PreemptContext":
        """Begin to watch.

        Returns:
            Itself, for a `with`.

        Raises:
            RuntimeError: When it was started before.
        """
        if self._started:
            raise RuntimeError("PreemptContext.start() was called twice")
        self._started = True
        return self

    def close(self) -> None:
        """Stop watching; twice is fine."""

    def __enter__(self) -> "PreemptContext":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def should_preempt(self, auto_ack: bool = True) -> bool:
        """Ask whether to save a checkpoint and leave; once it is True, it stays True.

        Ask often: the answer is known to the process and costs nothing. An unreachable cluster counts as no.

        Args:
            auto_ack: Whether the first True is acknowledged to the cluster. Without it, call
                `acknowledge_preemption_signal()` before leaving; else a clean exit would mean that the trial
                has finished.

        Returns:
            Whether to leave; with `WorkersAskChief`, the default, the same answer on all ranks.

        Raises:
            RuntimeError: Before `start()`, and on a rank that the mode forbids.

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
            preempted = self._dist.broadcast(preempted)
        if preempted and auto_ack and self._watches and not self._acknowledged:
            self.acknowledge_preemption_signal()
        return bool(preempted)

    def acknowledge_preemption_signal(self) -> None:
        """Tell the cluster that the exit to come is due to preemption, after all reports are stored.

        Waits for a checkpoint that is uploaded in the background.
        """
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
    """Nobody preempts off cluster; ranks are kept in step all the same."""

    def __init__(
        self, dist: DistributedContext, preempt_mode: PreemptMode = PreemptMode.WorkersAskChief
    ) -> None:
        super().__init__(OfflineTransport(), dist, preempt_mode)
