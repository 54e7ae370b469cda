"""The interface between the Core API contexts and the cluster.

Contexts know ranks, modes and errors; a transport knows how messages are sent. Only plain data crosses this
interface: JSON values, with non-finite floats already converted to the strings `NaN`, `Infinity`,
`-Infinity`. A transport therefore never handles user objects.
"""

from typing import Any, Protocol

import msgspec


class MetricReport(msgspec.Struct, frozen=True, gc=False):
    """A set of metrics of a trial at one number of completed steps (core API spec, section 6)."""

    group: str
    """`training`, `validation` or a custom name."""
    steps_completed: int
    """Training steps completed when the metrics were taken, in the script's unit; may be 0."""
    metrics: dict[str, Any]
    """Metric name -> encoded value. Owned by the receiver; nobody modifies it after the report."""
    batch_metrics: list[dict[str, Any]] | None = None
    """Encoded metrics of single batches, oldest first. Stored, not charted."""


class SearcherOp(msgspec.Struct, frozen=True):
    """The search method's next request to the trial: train until `length`, then validate."""

    seq: int
    """Number of the operation within the trial."""
    length: int
    """Absolute training length, in the searcher's unit."""


class StoredCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint whose bytes are completely stored (core API spec, section 7)."""

    uuid: str
    resources: dict[str, int]
    """Relative path -> size in bytes; directories end in `/` and have size 0."""
    metadata: dict[str, Any]
    """Encoded user metadata; contains `steps_completed`."""


class NeverStored(RuntimeError):
    """The cluster has refused a fact for good, and certainly none of its repeats has been stored."""


class Answers(Protocol):
    """Information from the cluster for a trial."""

    def operation(self) -> SearcherOp | None:
        """Return the operation that is not completed yet, or None if there is none for now.

        Repeated calls without a completion return the same operation, even after the script restarts.
        """

    def preempted(self) -> bool:
        """Return whether this allocation is asked to stop. Once True, it stays True.

        The first call waits up to 5 s for the first answer; later calls are local and cheap. If the cluster
        is unreachable it returns False. Never raises.
        """

    def best_validation(self) -> float | None:
        """Return the experiment's best searcher metric so far, or None if there is none.

        What this process has reported before counts. If the cluster does not answer, it returns the last
        known value or None: after 10 s on the first such call, immediately on later ones.
        """

    def storage_refusal(self, size_bytes: int) -> str:
        """Return why a checkpoint of this size may not be stored now; empty if it may.

        Pass 0 if the size is not known yet. If the cluster does not answer, it returns an empty string after
        3 s, once per outage.
        """

    def checkpoint_metadata(self, uuid: str) -> dict[str, Any]:
        """Return the cluster's metadata of a checkpoint; `{}` if there is none."""


class Transport(Answers, Protocol):
    """Sends facts of one trial process to the cluster, and receives answers.

    Methods may be called from any thread. An outage never causes an error in the training script, and does
    not block it where it could continue. `report`, `progress` and `set_status` never wait. `preempted` and
    `best_validation` wait briefly, once per outage. `checkpoint`, `acknowledge_preemption` and `exit_early`
    wait 10 s, once per outage, after which their fact is sent later, in order. All other methods wait until
    the cluster is back, and log that they are waiting.

    A report that the cluster refuses permanently (wrong run, duplicate key, too large) has no call waiting
    for it. The refusal is raised once, as RuntimeError, by the next call of `report`, `flush`, `set_status`,
    `best_validation` or `close`. No other method raises it, so that it cannot cause the loss of a completed
    operation or a stored checkpoint. Later reports are still sent. A permanently refused fact raises
    `NeverStored` from its own call, or from one of the methods above if that call has already returned.
    """

    def start(self) -> None:
        """Connect in the background. Returns immediately; a second call does nothing."""

    def close(self) -> None:
        """Flush, then disconnect. A second call does nothing. Raises a refusal not yet raised.

        A script that exits without calling it is flushed too, but for a limited time: see
        `leaving.exit_patience`.
        """

    def report(self, report: MetricReport) -> None:
        """Queue a report and return within microseconds. Order is preserved."""

    def flush(self) -> None:
        """Block until everything reported so far is stored in the log, in order."""

    def complete(self, seq: int, length: int, metric: object) -> None:
        """Complete an operation with the encoded searcher metric, after a flush.

        Returns once the search method has the value and its answer is known. Repeating the same (seq, length)
        is harmless.
        """

    def progress(self, units: float) -> None:
        """Report progress on the current operation. Advisory: returns immediately and never raises."""

    def new_checkpoint_id(self) -> str:
        """Return an id for a checkpoint that is about to be stored. Where possible, nobody else can register
        it."""

    def checkpoint(self, stored: StoredCheckpoint) -> None:
        """Register a stored checkpoint, after a flush. In an outage it may be registered later."""

    def acknowledge_preemption(self) -> None:
        """Report that a clean exit that follows means "schedule me again", after a flush. Idempotent."""

    def exit_early(self, reason: str) -> None:
        """Report that the trial ends by its own decision, after a flush. Repeating it is harmless.

        `reason` is a value of `EarlyExitReason`.
        """

    def set_status(self, status: str) -> None:
        """Set a short text as the status of the run. Returns immediately."""
