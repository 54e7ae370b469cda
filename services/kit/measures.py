"""What a service tells Prometheus of itself."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest


class Measures:
    """Counters of one service process, in a registry of its own."""

    def __init__(self, owner: str) -> None:
        self.registry = CollectorRegistry()
        self._owner = owner
        self._folded = self._counter("events_folded", "Events folded", "owner", "stream")
        self._position = Gauge(
            "steadfast_log_position", "Position folded up to", ["owner", "stream"], registry=self.registry
        )
        self._decided = self._counter("events_decided", "Events decided and stored", "owner")
        self._refused = self._counter("fence_lost", "Batches that another replica beat", "owner")
        self._skipped = self._counter("events_unknown", "Events of a newer version, skipped", "owner", "name")

    def _counter(self, name: str, help: str, *labels: str) -> Counter:
        return Counter(f"steadfast_{name}", help, labels, registry=self.registry)

    def folded(self, stream: str, count: int, position: int) -> None:
        """A batch of events was folded up to `position` of `stream`."""
        self._folded.labels(self._owner, stream).inc(count)
        self._position.labels(self._owner, stream).set(position)

    def decided(self, count: int) -> None:
        """That many events were decided and are stored."""
        self._decided.labels(self._owner).inc(count)

    def refused(self) -> None:
        """A batch was refused by the fence."""
        self._refused.labels(self._owner).inc()

    def skipped(self, name: str) -> None:
        """An event of an unknown name or version went by."""
        self._skipped.labels(self._owner, name).inc()

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)
