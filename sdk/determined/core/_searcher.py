"""How far to train, as the search method decides (core API spec, section 8)."""

import enum
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

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
    """Train until `length`, validate, then report the searcher metric: one step of the search."""

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
        """Tell how far training is, in the searcher's unit; advisory, so it never fails training.

        RuntimeError on a rank other than the chief, and after completion unless `length` is the operation's.
        """
        if not self._is_chief:
            raise RuntimeError("op.report_progress() may be called by the chief only")
        if self._completed and length != self.length:
            raise RuntimeError(
                f"op.report_progress({length}) was called after op.report_completed() of length {self.length}"
            )
        self._transport.progress(float(length))

    def report_completed(self, searcher_metric: Any) -> None:
        """Give the search method its value; on return the method has it. Chief only, once.

        Reports and checkpoints made before are stored first. Any JSON value is taken, NaN included.
        """
        if not self._is_chief:
            raise RuntimeError("op.report_completed() may be called by the chief only")
        if self._completed:
            raise RuntimeError("you may only call op.report_completed() once on each operation")
        self._uploads.settle()
        self._transport.complete(self._op.seq, self._op.length, encode(searcher_metric))
        self._completed = True


class SearcherContext:
    """The operations that the search method wants of this trial."""

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
        """Yield operations until nothing is left for now; lengths are absolute and increasing.

        A restarted script gets the operation it was interrupted in. Leaving the loop early needs no
        clean-up. RuntimeError if the chief comes back without having completed the operation, and on
        other ranks in mode ChiefOnly.
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
        """Tell the cluster that a clean exit to come is due to nothing being left for now."""
        self._uploads.settle()
        self._transport.acknowledge_preemption()

    def get_configured_units(self) -> Unit | None:
        """Return what operation lengths count; None if the configuration does not say."""
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
