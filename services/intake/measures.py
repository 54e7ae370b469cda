"""Metrics of the intake, for operators."""

from __future__ import annotations

from services.kit.process_metrics import Measures


class IntakeMeasures(Measures):
    """Counts rejected messages, in addition to the common metrics."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self._not_admitted = self.counter(
            "facts_not_admitted", "Messages of scripts and workers that were not admitted", "sender"
        )
        self._lines_refused = self.counter(
            "lines_refused", "Batches of log lines that a worker sent for runs that were not placed on it"
        )

    def lines_refused(self) -> None:
        """Count lines that a worker may not send."""
        self._lines_refused.labels(self.owner).inc()

    def not_admitted(self, subject: str) -> None:
        """Count a message on a subject of WITNESS that was rejected for good."""
        # Not the whole subject: labels are never removed, and there would be one per trial.
        sort = subject.removeprefix("witness.").partition(".")[0]
        sender = sort if sort in ("trial", "worker", "rest") else "nobody"
        self._not_admitted.labels(self.owner, sender).inc()
