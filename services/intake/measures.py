"""What operators see of the intake."""

from __future__ import annotations

from services.kit.process_metrics import Measures


class IntakeMeasures(Measures):
    """Counts, beside what all count, what was not let in."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self._not_admitted = self.counter(
            "facts_not_admitted", "Messages of scripts and workers that are no fact of their sender", "sender"
        )
        self._lines_refused = self.counter(
            "lines_refused", "Batches of log lines that a worker said of runs that were not placed on it"
        )

    def lines_refused(self) -> None:
        """A worker said what it may not say."""
        self._lines_refused.labels(self.owner).inc()

    def not_admitted(self, subject: str) -> None:
        """A message on a subject of WITNESS was refused for good."""
        # Not the whole subject: a label for each trial would be one for ever.
        sort = subject.removeprefix("witness.").partition(".")[0]
        sender = sort if sort in ("trial", "worker", "rest") else "nobody"
        self._not_admitted.labels(self.owner, sender).inc()
