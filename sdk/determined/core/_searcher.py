"""Training lengths requested by the search method (core API spec, section 8)."""

import enum
import logging
from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any

from det_contracts.bounds import too_large
from det_contracts.limits import METRIC_BYTES
from determined import _arguments
from determined.core._checkpoint_background import BackgroundUpload
from determined.core._distributed import DistributedContext, check_ranks
from determined.core._encode import encode_as
from determined.transport.offline import OfflineTransport
from determined.transport.protocol import SearcherOp

if TYPE_CHECKING:
    from determined.transport.protocol import Transport

logger = logging.getLogger("determined.core")


class Unit(enum.Enum):
    """The unit of a training length.

    Example:
        ```python
        length = op.length
        if core_context.searcher.get_configured_units() is det.core.Unit.EPOCHS:
            length *= batches_per_epoch
        ```
    """

    EPOCHS = "EPOCHS"
    RECORDS = "RECORDS"
    BATCHES = "BATCHES"


class SearcherMode(enum.Enum):
    """Which ranks iterate over operations.

    Example:
        ```python
        distributed = core_context.distributed
        if distributed.rank == 0:
            for op in core_context.searcher.operations(det.core.SearcherMode.ChiefOnly):
                distributed.broadcast(op.length)
                op.report_completed(train(until=op.length))
            distributed.broadcast(None)
        else:
            while (length := distributed.broadcast(None)) is not None:
                train(until=length)
        ```
    """

    WorkersAskChief = "WORKERS_ASK_CHIEF"
    """All ranks iterate in step; the chief broadcasts the lengths."""
    # Determined 0.25 misspells this value, and scripts may store it.
    ChiefOnly = "CHEIF_ONLY"
    """Only the chief iterates; the script informs the other ranks."""

    @classmethod
    def _missing_(cls, value: object) -> "SearcherMode | None":
        return cls.ChiefOnly if value == "CHIEF_ONLY" else None


def configured_units(config: dict[str, Any]) -> Unit | None:
    """Return the unit of the searcher's lengths in a configuration, or None if they are bare numbers."""
    searcher = config.get("searcher") or {}
    name = searcher.get("unit")
    length = searcher.get("max_length")
    if not name and isinstance(length, dict) and len(length) == 1:
        name = next(iter(length))
    return Unit(str(name).upper()) if name else None


class SearcherOperation:
    """One request of the search method: train until `length`, validate, and report the searcher metric.

    Example:
        ```python
        for op in core_context.searcher.operations():
            while epoch < op.length:
                train_epoch()
                epoch += 1
                op.report_progress(epoch)
            op.report_completed(validate())
        ```
    """

    def __init__(
        self,
        transport: "Transport",
        op: SearcherOp,
        is_chief: bool,
        uploads: BackgroundUpload | None = None,
    ) -> None:
        self._transport = transport
        self._uploads = uploads or BackgroundUpload()
        self._op = op
        self._is_chief = is_chief
        self._completed = False

    @property
    def length(self) -> int:
        """Absolute training length, in the searcher's unit.

        Example:
            ```python
            for op in core_context.searcher.operations():
                while epoch < op.length:    # in the unit of searcher.max_length
                    train_epoch()
                    epoch += 1
                op.report_completed(validate())
            ```
        """
        return self._op.length

    def report_progress(self, length: float) -> None:
        """Report training progress for the progress bar. A lost report does not fail training.

        Args:
            length: Total amount trained so far, in the unit of `length`.

        Raises:
            RuntimeError: On a rank other than the chief, and after completion unless `length` is the
                operation's.

        Example:
            ```python
            for epoch in range(epochs_done, op.length):
                train_one_epoch()
                op.report_progress(epoch + 1)
            ```
        """
        if not self._is_chief:
            raise RuntimeError("op.report_progress() may be called by the chief only")
        length = _arguments.number("length", length)
        if self._completed and length != self.length:
            raise RuntimeError(
                f"op.report_progress({length}) was called after op.report_completed() of length {self.length}"
            )
        if not isfinite(length):
            logger.warning("op.report_progress(%s) is ignored: progress is a finite number", length)
            return
        self._transport.progress(length)

    def report_completed(self, searcher_metric: Any) -> None:
        """Report the result of this operation. On return, the searcher has it. Chief only, once.

        Earlier reports and checkpoints are stored first, so nothing is lost if the search stops the trial
        here.

        Args:
            searcher_metric: Value of the metric named by `searcher.metric` in the configuration. Any JSON
                value of at most 65,536 bytes is accepted, including NaN.

        Raises:
            ValueError: Where the value is larger than that.
            RuntimeError: On a rank other than the chief, and when it was called before.

        Example:
            ```python
            for op in core_context.searcher.operations():
                accuracy = train_and_validate(until=op.length)
                op.report_completed(accuracy)
            ```
        """
        if not self._is_chief:
            raise RuntimeError("op.report_completed() may be called by the chief only")
        if self._completed:
            raise RuntimeError("you may only call op.report_completed() once on each operation")
        metric = encode_as("searcher_metric", searcher_metric)
        if beyond := too_large("searcher_metric", metric, METRIC_BYTES):
            raise ValueError(beyond)
        # First the checkpoint: the search may stop the run as soon as it has the result, and resume it later.
        self._uploads.settle()
        self._transport.complete(self._op.seq, self._op.length, metric)
        self._completed = True


class SearcherContext:
    """The search method's requests to this trial: `core_context.searcher`.

    Example:
        ```python
        for op in core_context.searcher.operations():
            accuracy = train_and_validate(until=op.length)
            op.report_completed(accuracy)
        ```
    """

    def __init__(
        self,
        transport: "Transport",
        dist: DistributedContext,
        units: Unit | None = None,
        uploads: BackgroundUpload | None = None,
    ) -> None:
        """`uploads` are waited for before an operation is completed."""
        self._transport = transport
        self._uploads = uploads or BackgroundUpload()
        check_ranks("dist", dist)
        self._dist = dist
        self._units = units

    def operations(
        self, searcher_mode: SearcherMode = SearcherMode.WorkersAskChief, auto_ack: bool = True
    ) -> Iterator[SearcherOperation]:
        """Yield operations one at a time until the search has no more work for the trial.

        Lengths are absolute and increasing: a trial that has trained for 4 and gets an operation of length 16
        trains 12 more. A restarted script first gets the operation during which it was interrupted. You may
        leave the loop early, for example on preemption; no clean-up is needed.

        Args:
            searcher_mode: With `WorkersAskChief`, all ranks iterate in step. With `ChiefOnly`, only the chief
                iterates, and the script informs the other ranks.
            auto_ack: Whether the end of the loop tells the cluster that the script is about to exit because
                no work is left.

        Returns:
            An iterator of `SearcherOperation`.

        Raises:
            RuntimeError: If the chief asks for the next operation before completing the previous one, or if
                another rank calls this in `ChiefOnly` mode.

        Example:
            ```python
            for op in core_context.searcher.operations():
                while steps < op.length:
                    steps += train_one_step()
                    if core_context.preempt.should_preempt():
                        return
                op.report_completed(validate())
            ```
        """
        mode = _arguments.member("searcher_mode", searcher_mode, SearcherMode)
        if self._dist.rank == 0:
            yield from self._lead(auto_ack, tell=mode is SearcherMode.WorkersAskChief)
        elif mode is SearcherMode.ChiefOnly:
            raise RuntimeError(
                f"core_context.searcher.operations() was called from non-chief rank {self._dist.rank} "
                "although searcher_mode is ChiefOnly"
            )
        else:
            yield from self._follow()

    def _lead(self, auto_ack: bool, tell: bool) -> Iterator[SearcherOperation]:
        while True:
            next_op = self._transport.operation()
            if tell:
                # Before `yield`: the other ranks wait here, and train at the same time as the chief.
                self._dist.broadcast(next_op.length if next_op else None)
            if next_op is None:
                break
            op = SearcherOperation(self._transport, next_op, is_chief=True, uploads=self._uploads)
            yield op
            # Reached when the script asks for the next one. A script that leaves the loop is not checked.
            if not op._completed:
                raise RuntimeError("you must call op.report_completed() on each operation")
        if auto_ack:
            self.acknowledge_out_of_ops()

    def _follow(self) -> Iterator[SearcherOperation]:
        # Workers never raise "you must call": only the chief knows, and workers wait in the broadcast.
        while (length := self._dist.broadcast(None)) is not None:
            # The number matters to the chief alone, which completes the operation.
            yield SearcherOperation(self._transport, SearcherOp(seq=0, length=length), is_chief=False)

    def acknowledge_out_of_ops(self) -> None:
        """Tell the cluster that the script is about to exit because no work is left for now.

        Needed only with `auto_ack=False`.

        Example:
            ```python
            for op in core_context.searcher.operations(auto_ack=False):
                train(op)
            core_context.searcher.acknowledge_out_of_ops()
            ```
        """
        self._uploads.settle()
        self._transport.acknowledge_preemption()

    def get_configured_units(self) -> Unit | None:
        """Return the unit of training lengths.

        Returns:
            `Unit.BATCHES`, `Unit.RECORDS` or `Unit.EPOCHS`, or None if the configuration gives a bare
            number.

        Example:
            ```python
            if core_context.searcher.get_configured_units() is det.core.Unit.EPOCHS:
                batches = op.length * len(train_loader)
            ```
        """
        return self._units


class DummySearcherOperation(SearcherOperation):
    """An operation that does not come from a search method."""

    def __init__(self, length: int, is_chief: bool) -> None:
        super().__init__(OfflineTransport(length), SearcherOp(seq=0, length=length), is_chief)


class DummySearcherContext(SearcherContext):
    """Yields one operation per loop, for scripts that run off cluster."""

    def __init__(self, dist: DistributedContext, length: int = 1) -> None:
        super().__init__(OfflineTransport(_arguments.integer("length", length)), dist, Unit.EPOCHS)
        self._length = length

    def operations(
        self, searcher_mode: SearcherMode = SearcherMode.WorkersAskChief, auto_ack: bool = True
    ) -> Iterator[SearcherOperation]:
        """Yield exactly one operation per call, with the same checks and synchronization as on a cluster."""
        # A transport of its own for each loop: the operation of the loop before it is completed.
        fresh = SearcherContext(OfflineTransport(self._length), self._dist, self._units)
        return fresh.operations(searcher_mode, auto_ack)
