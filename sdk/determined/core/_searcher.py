"""How far to train, as the search method decides (core API spec, section 8)."""

import enum
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from det_contracts.bounds import too_large
from det_contracts.limits import METRIC_BYTES
from determined.core._checkpoint_background import BackgroundUpload
from determined.core._distributed import DistributedContext
from determined.core._encode import encode
from determined.transport.offline import OfflineTransport
from determined.transport.protocol import SearcherOp

if TYPE_CHECKING:
    from determined.transport.protocol import Transport

logger = logging.getLogger("determined.core")


class Unit(enum.Enum):
    """What a training length counts."""

    EPOCHS = "EPOCHS"
    RECORDS = "RECORDS"
    BATCHES = "BATCHES"


class SearcherMode(enum.Enum):
    """Which ranks iterate over operations."""

    WorkersAskChief = "WORKERS_ASK_CHIEF"
    """All ranks in step; the chief tells the lengths."""
    # The misspelt value is what Determined 0.25 has; scripts may store it.
    ChiefOnly = "CHEIF_ONLY"
    """Only the chief; the script tells the others."""

    @classmethod
    def _missing_(cls, value: object) -> "SearcherMode | None":
        return cls.ChiefOnly if value == "CHIEF_ONLY" else None


def configured_units(config: dict[str, Any]) -> Unit | None:
    """Return the unit of a configuration's searcher lengths; None if they are bare numbers."""
    searcher = config.get("searcher") or {}
    name = searcher.get("unit")
    length = searcher.get("max_length")
    if not name and isinstance(length, dict) and len(length) == 1:
        name = next(iter(length))
    return Unit(str(name).upper()) if name else None


class SearcherOperation:
    """One request of the search: train until `length`, validate, and report the searcher's metric."""

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
        """Absolute training length, in the searcher's unit."""
        return self._op.length

    def report_progress(self, length: float) -> None:
        """Report how far training is, for the progress bar. It never fails training.

        Args:
            length: What has been trained in all, in the unit of `length`.

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
        if self._completed and length != self.length:
            raise RuntimeError(
                f"op.report_progress({length}) was called after op.report_completed() of length {self.length}"
            )
        self._transport.progress(float(length))

    def report_completed(self, searcher_metric: Any) -> None:
        """Report the result of this operation; on return the search has it. The chief alone, once.

        Reports and checkpoints made before are stored first, so that a trial that is stopped here has lost
        nothing.

        Args:
            searcher_metric: The value of the metric that the configuration names as `searcher.metric`. Any
                JSON value of at most 65,536 bytes is taken, NaN included.

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
        metric = encode(searcher_metric)
        if beyond := too_large("searcher_metric", metric, METRIC_BYTES):
            raise ValueError(beyond)
        self._uploads.settle()
        self._transport.complete(self._op.seq, self._op.length, metric)
        self._completed = True


class SearcherContext:
    """What the search wants of this trial: `core_context.searcher`."""

    def __init__(
        self,
        transport: "Transport",
        dist: DistributedContext,
        units: Unit | None = None,
        uploads: BackgroundUpload | None = None,
    ) -> None:
        """`uploads` are to be over before an operation is completed."""
        self._transport = transport
        self._uploads = uploads or BackgroundUpload()
        self._dist = dist
        self._units = units

    def operations(
        self, searcher_mode: SearcherMode = SearcherMode.WorkersAskChief, auto_ack: bool = True
    ) -> Iterator[SearcherOperation]:
        """Yield one operation after another until the search wants nothing more for now.

        Lengths are absolute and increasing: a trial that has trained for 4 and gets an operation of length 16
        trains 12 more. A script that was started again gets the operation in which it was interrupted.
        Leaving the loop early, for example to give the slots back, needs no clean-up.

        Args:
            searcher_mode: `WorkersAskChief`: all ranks iterate in step. `ChiefOnly`: the chief alone does,
                and the script tells the others.
            auto_ack: Whether the end of the loop tells the cluster that the clean exit to come is due to
                nothing being left.

        Returns:
            An iterator of `SearcherOperation`.

        Raises:
            RuntimeError: When the chief asks for the next operation without having completed the last one,
                and on other ranks in the mode `ChiefOnly`.

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
        mode = SearcherMode(searcher_mode)
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
                self._dist.broadcast(next_op.length if next_op else None)
            if next_op is None:
                break
            op = SearcherOperation(self._transport, next_op, is_chief=True, uploads=self._uploads)
            yield op
            if not op._completed:
                raise RuntimeError("you must call op.report_completed() on each operation")
        if auto_ack:
            self.acknowledge_out_of_ops()

    def _follow(self) -> Iterator[SearcherOperation]:
        # Workers never raise "you must call": the chief alone knows, and they wait in the broadcast.
        while (length := self._dist.broadcast(None)) is not None:
            yield SearcherOperation(self._transport, SearcherOp(seq=0, length=length), is_chief=False)

    def acknowledge_out_of_ops(self) -> None:
        """Tell the cluster that the clean exit to come is due to nothing being left for now; only with
        `auto_ack=False`.
        """
        self._uploads.settle()
        self._transport.acknowledge_preemption()

    def get_configured_units(self) -> Unit | None:
        """Return the unit of lengths.

        Returns:
            `Unit.BATCHES`, `Unit.RECORDS` or `Unit.EPOCHS`; None if the configuration gives a bare number.
        """
        return self._units


class DummySearcherOperation(SearcherOperation):
    """An operation that no search method asked for."""

    def __init__(self, length: int, is_chief: bool) -> None:
        super().__init__(OfflineTransport(length), SearcherOp(seq=0, length=length), is_chief)


class DummySearcherContext(SearcherContext):
    """One operation per loop, as a script on a laptop wants it."""

    def __init__(self, dist: DistributedContext, length: int = 1) -> None:
        super().__init__(OfflineTransport(length), dist, Unit.EPOCHS)
        self._length = length

    def operations(
        self, searcher_mode: SearcherMode = SearcherMode.WorkersAskChief, auto_ack: bool = True
    ) -> Iterator[SearcherOperation]:
        """Yield exactly one operation per call, with the checks and synchronization of the real one."""
        fresh = SearcherContext(OfflineTransport(self._length), self._dist, self._units)
        return fresh.operations(searcher_mode, auto_ack)
