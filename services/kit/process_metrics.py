"""Prometheus metrics of a platform process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from det_contracts.envelope import Recorded
from services.kit.log import Stored

TIME_BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Bucket bounds of time histograms, in seconds."""


class Reading(msgspec.Struct, frozen=True):
    """A current value for each of several things."""

    name: str
    help: str
    labels: tuple[str, ...]
    values: Mapping[Any, float]
    """By label values: a tuple of strings, as long as `labels`."""


Readings = Callable[[], Iterable[Reading]]


class Measures:
    """Counters and timings of one process, in a registry of its own."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.registry = CollectorRegistry()
        self._refreshers: list[Callable[[], Awaitable[None]]] = []
        ProcessCollector(registry=self.registry)
        self._folded = self.counter("events_folded", "Events folded", "stream")
        self._position = self._gauge("log_position", "Position folded up to", "stream")
        self._fold_s = self.histogram("fold_seconds", "Time to fold one batch of events", "stream")
        self._stream_metrics = cache(self._make_stream_metrics)
        """Cached, because looking up metrics by label takes longer than folding an event."""
        self._decided = self.counter("events_decided", "Events decided and stored")
        self._append_s = self.histogram("append_seconds", "Time to store a decision in the log")
        self._commit_s = self.histogram("commit_seconds", "Time of one transaction of the read model")
        self._answer_s = self.histogram(
            "answer_seconds", "Time to answer a command or query", "name", "outcome"
        )
        self._refused = self.counter("fence_lost", "Batches rejected by the fence")
        self._blocked_s = self.histogram("loop_blocked_seconds", "Stalls of the event loop")
        # Create the series at once, so that a first increase is visible.
        self._blocked_s.labels(owner)
        self._skipped = self.counter("events_unknown", "Log messages that were skipped", "name")
        self._parked = self.counter("decisions_parked", "Records that cannot be decided on", "kind")

    def counter(self, name: str, help: str, *labels: str) -> Counter:
        """Create a counter `steadfast_<name>_total`, whose first label is the owner."""
        return Counter(f"steadfast_{name}", help, ("owner", *labels), registry=self.registry)

    def histogram(self, name: str, help: str, *labels: str) -> Histogram:
        """Create a histogram of seconds, whose first label is the owner."""
        return Histogram(
            f"steadfast_{name}", help, ("owner", *labels), registry=self.registry, buckets=TIME_BUCKETS_S
        )

    def _gauge(self, name: str, help: str, *labels: str) -> Gauge:
        return Gauge(f"steadfast_{name}", help, ("owner", *labels), registry=self.registry)

    def register(
        self,
        readings: Readings,
        refresh: Callable[[], Awaitable[None]] | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        """Call `readings` on every scrape, after `refresh`. The owner becomes their first label.

        `registry` overrides the registry, for readings that must also be available without the others.
        """
        (registry or self.registry).register(_ReadingCollector(self.owner, readings))
        if refresh is not None:
            self._refreshers.append(refresh)

    def folded(
        self, stream: str, messages: Sequence[Stored], events: Sequence[Recorded], seconds: float
    ) -> None:
        """Messages were folded. `events` are those that were not passed over."""
        folded, position, fold_s = self._stream_metrics(stream)
        folded.inc(len(messages))
        position.set(messages[-1].position)
        fold_s.observe(seconds)

    def _make_stream_metrics(self, stream: str) -> tuple[Counter, Gauge, Histogram]:
        labels = self.owner, stream
        return self._folded.labels(*labels), self._position.labels(*labels), self._fold_s.labels(*labels)

    def decided(self, count: int, seconds: float) -> None:
        """Record that `count` events were decided and took `seconds` to be stored in the log."""
        self._decided.labels(self.owner).inc(count)
        self._append_s.labels(self.owner).observe(seconds)

    def committed(self, seconds: float) -> None:
        """Record a database transaction."""
        self._commit_s.labels(self.owner).observe(seconds)

    def answered(self, name: str, outcome: str, seconds: float) -> None:
        """Record an answered command or query. `outcome` is `ok` or the problem code."""
        self._answer_s.labels(self.owner, name, outcome).observe(seconds)

    def refused(self) -> None:
        """Record a batch rejected by the fence."""
        self._refused.labels(self.owner).inc()

    def parked(self, kind: str) -> None:
        """Record that a record of this kind cannot be decided on until it changes."""
        self._parked.labels(self.owner, kind).inc()

    def skipped(self, name: str) -> None:
        """Record an event with an unknown name or version, or a message that is not an event."""
        self._skipped.labels(self.owner, name).inc()

    def blocked(self, seconds: float) -> None:
        """Record a stall of the event loop."""
        self._blocked_s.labels(self.owner).observe(seconds)

    async def text(self) -> bytes:
        """Return all current metrics in Prometheus' text format."""
        for refresh in self._refreshers:
            await refresh()
        return generate_latest(self.registry)


class _ReadingCollector(Collector):
    def __init__(self, owner: str, readings: Readings) -> None:
        self._owner = owner
        self._readings = readings

    def collect(self) -> Iterable[Metric]:
        for reading in self._readings():
            family = GaugeMetricFamily(
                f"steadfast_{reading.name}", reading.help, labels=("owner", *reading.labels)
            )
            for labels, value in reading.values.items():
                family.add_metric([self._owner, *labels], value)
            yield family

    def describe(self) -> Iterable[Metric]:
        # Read nothing at registration, because the sources may not exist yet.
        return ()
