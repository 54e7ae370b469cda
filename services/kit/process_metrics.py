"""What a process of the platform tells Prometheus of itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from det_contracts.envelope import Recorded

QUICK_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Bounds of histograms of times, in seconds."""


class Reading(msgspec.Struct, frozen=True):
    """A number for each of some things, as it is just now."""

    name: str
    help: str
    labels: tuple[str, ...]
    values: Mapping[Any, float]
    """By the values of the labels: a tuple of texts, as long as `labels`."""


Readings = Callable[[], Iterable[Reading]]


class Measures:
    """Counters and times of one process, in a registry of its own."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.registry = CollectorRegistry()
        self._looks: list[Callable[[], Awaitable[None]]] = []
        ProcessCollector(registry=self.registry)
        self._folded = self.counter("events_folded", "Events folded", "stream")
        self._position = self._gauge("log_position", "Position folded up to", "stream")
        self._fold_s = self.histogram("fold_seconds", "Time to fold one batch of events", "stream")
        self._of_stream = cache(self._with_stream)
        """Looking its numbers up by their labels takes longer than to fold an event."""
        self._decided = self.counter("events_decided", "Events decided and stored")
        self._append_s = self.histogram("append_seconds", "Time until the log has a decision")
        self._commit_s = self.histogram("commit_seconds", "Time of one transaction of the read model")
        self._answer_s = self.histogram(
            "answer_seconds", "Time to answer a command or query", "name", "outcome"
        )
        self._refused = self.counter("fence_lost", "Batches that another replica beat")
        self._blocked_s = self.histogram("loop_blocked_seconds", "Stalls of the event loop")
        # There from the beginning: nothing is counted from nothing on.
        self._blocked_s.labels(owner)
        self._skipped = self.counter("events_unknown", "Messages of the log that were passed over", "name")
        self._parked = self.counter("decisions_parked", "Records about which nothing can be decided", "kind")

    def counter(self, name: str, help: str, *labels: str) -> Counter:
        """A further counter `steadfast_<name>_total`, whose first label is the owner."""
        return Counter(f"steadfast_{name}", help, ("owner", *labels), registry=self.registry)

    def histogram(self, name: str, help: str, *labels: str) -> Histogram:
        """A further histogram of seconds, whose first label is the owner."""
        return Histogram(
            f"steadfast_{name}", help, ("owner", *labels), registry=self.registry, buckets=QUICK_S
        )

    def _gauge(self, name: str, help: str, *labels: str) -> Gauge:
        return Gauge(f"steadfast_{name}", help, ("owner", *labels), registry=self.registry)

    def read(
        self,
        readings: Readings,
        look: Callable[[], Awaitable[None]] | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        """Ask `readings` whenever Prometheus asks, after `look`; the owner becomes their first label.

        `registry` is given where they are to be had without the others, too.
        """
        (registry or self.registry).register(_Asked(self.owner, readings))
        if look is not None:
            self._looks.append(look)

    def folded(self, stream: str, events: Sequence[Recorded], seconds: float) -> None:
        """A batch of events was folded."""
        folded, position, fold_s = self._of_stream(stream)
        folded.inc(len(events))
        position.set(events[-1].position)
        fold_s.observe(seconds)

    def _with_stream(self, stream: str) -> tuple[Counter, Gauge, Histogram]:
        labels = self.owner, stream
        return self._folded.labels(*labels), self._position.labels(*labels), self._fold_s.labels(*labels)

    def decided(self, count: int, seconds: float) -> None:
        """That many events were decided, and the log had them after `seconds`."""
        self._decided.labels(self.owner).inc(count)
        self._append_s.labels(self.owner).observe(seconds)

    def committed(self, seconds: float) -> None:
        """What was folded is in the database."""
        self._commit_s.labels(self.owner).observe(seconds)

    def answered(self, name: str, outcome: str, seconds: float) -> None:
        """A command or query was answered; `outcome` is `ok` or the code of the problem."""
        self._answer_s.labels(self.owner, name, outcome).observe(seconds)

    def refused(self) -> None:
        """A batch was refused by the fence."""
        self._refused.labels(self.owner).inc()

    def parked(self, kind: str) -> None:
        """Nothing can be decided about a record of this kind until it moves."""
        self._parked.labels(self.owner, kind).inc()

    def skipped(self, name: str) -> None:
        """An event of an unknown name or version went by, or something that is no event."""
        self._skipped.labels(self.owner, name).inc()

    def blocked(self, seconds: float) -> None:
        """The event loop stood still for so long."""
        self._blocked_s.labels(self.owner).observe(seconds)

    async def text(self) -> bytes:
        """Everything as it is now, in Prometheus' text format."""
        for look in self._looks:
            await look()
        return generate_latest(self.registry)


class _Asked(Collector):
    def __init__(self, owner: str, readings: Readings) -> None:
        self._owner = owner
        self._readings = readings

    def collect(self) -> Iterable[Metric]:
        for one in self._readings():
            family = GaugeMetricFamily(f"steadfast_{one.name}", one.help, labels=("owner", *one.labels))
            for labels, value in one.values.items():
                family.add_metric([self._owner, *labels], value)
            yield family

    def describe(self) -> Iterable[Metric]:
        # Nothing is read before somebody asks: what is read may not be there yet.
        return ()
