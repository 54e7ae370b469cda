"""The intake as a process, assembled from its parts.

It has no database: everything it knows is in the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from nats.aio.client import Client

from det_contracts import subjects
from det_contracts.events import Decision
from services.intake.connection_guard import ConnectionGuard
from services.intake.edge import Edge
from services.intake.measures import IntakeMeasures
from services.intake.relay import Relay
from services.kit import stateless_host
from services.kit.archive.settings import log_with_archive
from services.kit.connection import raise_when_closed
from services.kit.disk_space import stream_limit
from services.kit.lag import Lag
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.process_metrics import Reading
from services.kit.records import read_event
from services.kit.settings import ServiceSettings
from services.kit.stateless_host import ProcessContext, ProcessParts

if TYPE_CHECKING:
    from services.kit.spans import Tracer

OWNER = subjects.INTAKE


async def serve(settings: ServiceSettings, tracer: Tracer | None) -> None:
    """Admit facts until cancelled. Raises `LogTruncated` if WITNESS has lost acknowledged messages."""
    measures = IntakeMeasures(OWNER)

    async def join(context: ProcessContext) -> ProcessParts:
        context.watch.set_starting("waiting for the streams of the broker")
        await _make_streams(settings, context.connection, context.journal)
        # External messages may overload a connection, so the log uses another one.
        outer = await context.connect("edge")
        journal, is_leader = context.journal, lambda: context.lease.active
        whole = log_with_archive(journal, settings)
        relay = Relay(whole, is_leader=is_leader, replica=context.replica, measures=measures)
        return ProcessParts(
            work=relay,
            position=lambda: relay.position,
            readings=lambda: _readings(relay),
            # While CONTROL accepts nothing, a restart would not help.
            lag=lambda: {} if subjects.CONTROL in journal.refusals() else _lags(relay),
            background=[
                raise_when_closed(outer),
                Edge(outer, whole, measures).run(),
                ConnectionGuard(context.connection, is_leader).run(),
            ],
        )

    await stateless_host.serve(OWNER, settings, tracer, measures, join)


async def _make_streams(settings: ServiceSettings, connection: Client, journal: JetStreamLog) -> None:
    """Ensure that all streams exist. Raises `LogTruncated` if WITNESS is gone although it was read before."""
    keep = stream_limit(settings.stream_keep_mib, settings.log_disk)
    js, shrink = connection.jetstream(), settings.stream_keep_mib > 0
    admitted = await _admitted(connection, journal)
    replicas = settings.stream_replicas
    await ensure_streams(js, replicas=replicas, keep_bytes=keep, shrink=shrink, read_positions=admitted)


async def _admitted(connection: Client, journal: JetStreamLog) -> Mapping[str, int]:
    """How far WITNESS was read according to the log; empty if there is no log yet."""
    try:
        await journal.state(subjects.CONTROL)
    # Whatever is wrong with CONTROL, `ensure_streams` finds it again and says it in full.
    except Exception:
        return {}
    last = await journal.last(subjects.decision(OWNER))
    decided = read_event(last).event if last is not None else None
    return {subjects.WITNESS: decided.to} if isinstance(decided, Decision) and decided.to else {}


def _lags(relay: Relay) -> dict[str, Lag]:
    return {subjects.WITNESS: relay.feed.lag} if relay.feed is not None else {}


def _readings(relay: Relay) -> Iterable[Reading]:
    left = {(stream,): float(lag.left) for stream, lag in _lags(relay).items()}
    yield Reading("log_lag", "Facts in WITNESS that are neither admitted nor refused yet", ("stream",), left)
    seconds = {(stream,): lag.age_s for stream, lag in _lags(relay).items()}
    yield Reading("log_lag_seconds", "Age of the oldest of them", ("stream",), seconds)
