"""The one seam between the Core API contexts and the cluster.

Contexts know ranks, modes and errors; a transport knows how a message travels. Everything that
crosses the seam is plain data: JSON-able values (non-finite floats already the strings `NaN`,
`Infinity`, `-Infinity`), so that a transport never meets a user's objects.
"""

from typing import Any, Protocol

import msgspec


class MetricReport(msgspec.Struct, frozen=True, gc=False):
    """One set of metrics of a trial at one number of completed steps (core API spec, section 6)."""

    group: str
    """`training`, `validation` or any name of the user's."""
    steps_completed: int
    """Training steps finished when the metrics were taken, in the script's own unit; 0 is allowed."""
    metrics: dict[str, Any]
    """Metric name -> encoded value. Belongs to the receiver: nobody changes it after the report."""
    batch_metrics: list[dict[str, Any]] | None = None
    """Encoded metrics of single batches, oldest first; stored, not charted."""


class SearcherOp(msgspec.Struct, frozen=True):
    """What the search method wants next of this trial: train until `length`, then validate."""

    seq: int
    """Number of the operation within the trial."""
    length: int
    """Absolute training length, in the searcher's unit."""


class StoredCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint whose bytes are complete in storage (core API spec, section 7)."""

    uuid: str
    resources: dict[str, int]
    """Relative path -> size in bytes; directories end in `/` and have size 0."""
    metadata: dict[str, Any]
    """Encoded metadata of the user; holds `steps_completed`."""


class Answers(Protocol):
    """What the cluster tells a trial."""

    def operation(self) -> SearcherOp | None:
        """Return the operation that is not completed yet; None when nothing is left for now.

        Asking again without completing gives the same answer, across restarts of the script too.
        """

    def preempted(self) -> bool:
        """Say whether this allocation is asked to stop; once True, always True.

        The first call waits 5 s for the first answer, later ones are local and cheap. Not reaching the
        cluster counts as False. Never raises.
        """

    def best_validation(self) -> float | None:
        """Return the best searcher metric of the experiment so far; None when there is none.

        While nobody answers: the last answer that this process had, None if it had none, after 10 s at the
        first call and at once at later ones.
        """

    def storage_refusal(self, size_bytes: int) -> str:
        """Say why no checkpoint of so many bytes may be stored now; empty where one may.

        0 where the size is not known yet. Also empty while nobody answers, after 3 s, once in an outage.
        """

    def checkpoint_metadata(self, uuid: str) -> dict[str, Any]:
        """Return what the cluster holds as metadata of a checkpoint; `{}` if none."""


class Transport(Answers, Protocol):
    """Carry facts of one trial process to the cluster and answers back.

    Methods may be called from any thread. An outage is never an error of the training script, and does not
    stop it where it could go on: `report`, `progress` and `set_status` never wait; `preempted` and
    `best_validation` wait a while, once in an outage; `checkpoint`, `acknowledge_preemption` and `exit_early`
    wait 10 s, once in an outage, and leave their fact to be sent later, in order. The others wait for as
    long as the cluster is away, and say so.

    A report that the cluster refuses for good (wrong run, key reported twice, too large) has no call waiting
    for it; the refusal is raised once, as RuntimeError, by the next of `report`, `flush`, `set_status`,
    `best_validation` or `close`. No other method raises it, so that a completed operation or a stored
    checkpoint is not lost to it. What comes after it is sent. A fact that is refused for good is a
    RuntimeError of its own call, of one of those above if that has returned.
    """

    def start(self) -> None:
        """Connect in the background; returns at once and does nothing the second time."""

    def close(self) -> None:
        """Flush, then leave. Does nothing the second time. Raises a refusal not yet raised.

        A script that ends without is flushed, too, but not for ever: see `leaving.exit_patience`.
        """

    def report(self, report: MetricReport) -> None:
        """Take a report over and return at once, in microseconds; order is kept."""

    def flush(self) -> None:
        """Block until everything reported so far is stored in the log, in order."""

    def complete(self, seq: int, length: int, metric: object) -> None:
        """Complete an operation with the encoded searcher metric, after a flush.

        Returns when the search method has the value and its answer is known. The same (seq, length) again is
        harmless.
        """

    def progress(self, units: float) -> None:
        """Tell how far the current operation is. Advisory: returns at once and never raises."""

    def checkpoint(self, stored: StoredCheckpoint) -> None:
        """Make a stored checkpoint known, after a flush; in an outage it may be known only later."""

    def acknowledge_preemption(self) -> None:
        """Tell that a clean exit to come means "schedule me again", after a flush; idempotent."""

    def exit_early(self, reason: str) -> None:
        """Tell that the trial ends by its own will, after a flush; repeats are harmless.

        `reason` is a value of `EarlyExitReason`.
        """

    def set_status(self, status: str) -> None:
        """Show a short text as the state of the runner; returns at once."""
