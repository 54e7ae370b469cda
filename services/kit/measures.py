"""What a service tells Prometheus of itself."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest


class Measures:
    """Counters of one service process, in a registry of its own."""

    def __init__(self, owner: str) -> None:
        self.registry = CollectorRegistry()
        labels = {"registry": self.registry}
        self._owner = owner
        self._folded = Counter("steadfast_events_folded", "Events folded", ["owner", "stream"], **labels)
        self._position = Gauge("steadfast_log_position", "Position folded up to", ["owner", "stream"], **labels)
        self._decided = Counter("steadfast_events_decided", "Events decided and stored", ["owner"], **labels)
        self._refused = Counter("steadfast_fence_lost", "Batches that another replica beat", ["owner"], **labels)
        self._skipped = Counter(
            "steadfast_events_unknown", "Events of a newer version, skipped", ["owner", "name"], **labels
        )

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
