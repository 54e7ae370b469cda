"""The environment of a service, read on every Prometheus scrape: streams, database, leadership."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

from services.kit.log import OutcomeUnknown
from services.kit.parts import Parts
from services.kit.process_metrics import Reading


class EnvironmentMetrics:
    """Metrics of one service that are neither counted nor timed."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._streams: dict[str, dict[str, Any]] = {}
        self._database_bytes = 0

    async def refresh(self) -> None:
        """Refresh the sizes of streams and database."""
        await asyncio.gather(*(self._refresh_stream(stream) for stream in self._parts.runner.positions))
        self._database_bytes = await self._parts.database.size_bytes()

    async def _refresh_stream(self, stream: str) -> None:
        # Keep the last values while the broker is away, which `broker_connected` shows.
        with contextlib.suppress(OutcomeUnknown):
            self._streams[stream] = await self._parts.stream.state(stream)

    def readings(self) -> Iterable[Reading]:
        """Prometheus readings of the environment and the service itself."""
        lag = {
            (stream,): float(max(state["last_seq"] - self._parts.runner.positions[stream], 0))
            for stream, state in self._streams.items()
        }
        yield Reading("log_lag", "Events in the log that are not folded yet", ("stream",), lag)
        seconds = {(stream,): measure.age_s for stream, measure in self._parts.runner.lag().items()}
        yield Reading(
            "log_lag_seconds", "Age of the oldest event that is not folded yet", ("stream",), seconds
        )
        yield _reading(
            "unsaved_seconds", "Time for which saving is overdue", self._parts.saver.portions.lag.age_s
        )
        for name in ("messages", "bytes"):
            sizes = {(stream,): float(state[name]) for stream, state in self._streams.items()}
            yield Reading(f"stream_{name}", f"Size of a stream in {name}", ("stream",), sizes)
        yield _reading("database_bytes", "Size of the service's database", self._database_bytes)
        yield _reading(
            "unsaved_events", "Events folded and not in the database yet", self._parts.saver.unsaved_events
        )
        yield _reading("leads", "1 while this replica decides", self._parts.is_leader())
        yield _reading("ready", "1 once the whole log was folded", self._parts.runner.ready.is_set())
        connected = self._parts.connection.is_connected
        yield _reading("broker_connected", "1 while connected to the broker", connected)


def _reading(name: str, help: str, value: float) -> Reading:
    return Reading(name, help, (), {(): float(value)})
