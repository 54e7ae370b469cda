"""The intake as a process: its real parts, joined. It has no database; all that it knows is in the log."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import structlog
from nats.aio.client import Client
from nats.errors import ConnectionClosedError

from det_contracts import subjects
from det_contracts.events import Decision
from services.intake.edge import Edge
from services.intake.measures import IntakeMeasures
from services.intake.relay import Relay
from services.kit.archive.settings import whole_log
from services.kit.cluster_look import ClusterLook
from services.kit.connection import closed_for_good, connect, leave, until_closed
from services.kit.disk_space import stream_limit
from services.kit.health_signs import tell_signs
from services.kit.lag import Behind
from services.kit.lease import Lease
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.measures import Reading
from services.kit.records import read_event
from services.kit.self_watch import Facts, SelfWatch
from services.kit.settings import ServiceSettings

if TYPE_CHECKING:
    from services.kit.spans import Tracer

OWNER = subjects.INTAKE

log = structlog.get_logger()


async def serve(settings: ServiceSettings, tracer: Tracer | None) -> None:
    """Admit facts until cancelled; raises `LogTruncated` where WITNESS has lost what it acknowledged."""
    measures = IntakeMeasures(OWNER)
    watch = SelfWatch(OWNER, settings, measures)
    async with AsyncExitStack() as stack:
        if tracer is not None:
            stack.callback(tracer.flush)
        stack.enter_context(watch.shown())
        watch.begin("waiting for the broker")
        connection = await connect(settings, OWNER)
        stack.push_async_callback(leave, connection)
        watch.begin("waiting for the streams of the broker")
        journal = JetStreamLog(connection)
        await _make_streams(settings, connection, journal)
        replica = uuid.uuid4().hex[:8]
        lease = Lease(connection, OWNER, replica, replicas=settings.stream_replicas)
        # What strangers say may be too much for a connection: the log is read and written over another.
        outer = await connect(settings, "edge")
        stack.push_async_callback(leave, outer)
        relay = Relay(
            whole_log(journal, settings), leading=lambda: lease.active, replica=replica, measures=measures
        )
        look = ClusterLook(connection)
        measures.read(lambda: _readings(relay, lease, connection))
        stack.enter_context(watch.watching_loop())
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(until_closed(connection))
                tasks.create_task(until_closed(outer))
                tasks.create_task(Edge(outer).run())
                tasks.create_task(lease.hold())
                tasks.create_task(_follow(lease, relay))
                tasks.create_task(relay.run())
                tasks.create_task(look.run())
                tasks.create_task(tell_signs(connection, watch.conditions, replica))
                tasks.create_task(watch.run(_facts(connection, look, relay, journal)))
                log.info("service.ready")
        except* ConnectionClosedError:
            raise closed_for_good(connection) from None


async def _make_streams(settings: ServiceSettings, connection: Client, journal: JetStreamLog) -> None:
    """Have all streams there; raises `LogTruncated` where WITNESS is gone although it was read."""
    keep = stream_limit(settings.stream_keep_mib, settings.log_disk)
    js, shrink = connection.jetstream(), settings.stream_keep_mib > 0
    known = await _admitted(connection, journal)
    replicas = settings.stream_replicas
    await ensure_streams(js, replicas=replicas, keep_bytes=keep, shrink=shrink, known=known)


async def _admitted(connection: Client, journal: JetStreamLog) -> Mapping[str, int]:
    """How far WITNESS was read, as the log says; nothing where there is no log yet."""
    try:
        await journal.state(subjects.CONTROL)
    except Exception:
        return {}
    last = await journal.last(subjects.decision(OWNER))
    decided = read_event(last).event if last is not None else None
    return {subjects.WITNESS: decided.to} if isinstance(decided, Decision) and decided.to else {}


async def _follow(lease: Lease, relay: Relay) -> None:
    while True:
        await lease.wait_for_change()
        if lease.active:
            log.info("service.leads")
        relay.lead()


def _facts(connection: Client, look: ClusterLook, relay: Relay, journal: JetStreamLog) -> Facts:
    return Facts(
        connection=connection,
        look=look,
        starting=str,
        # While CONTROL takes nothing no new start would get further.
        behind=lambda: {} if subjects.CONTROL in journal.refusals() else _behind(relay),
        position=lambda _: relay.position,
        reads_all=False,
        refusals=journal.refusals,
    )


def _behind(relay: Relay) -> dict[str, Behind]:
    return {subjects.WITNESS: relay.feed.behind} if relay.feed is not None else {}


def _readings(relay: Relay, lease: Lease, connection: Client) -> Iterable[Reading]:
    left = {(stream,): float(one.left) for stream, one in _behind(relay).items()}
    yield Reading("log_lag", "Facts in WITNESS that are neither admitted nor refused yet", ("stream",), left)
    seconds = {(stream,): one.age_s for stream, one in _behind(relay).items()}
    yield Reading("log_lag_seconds", "Age of the oldest of them", ("stream",), seconds)
    for name, help, value in (
        ("leads", "1 while this replica decides", lease.active),
        ("ready", "1 once it can take over", True),
        ("broker_connected", "1 while connected to the broker", connection.is_connected),
    ):
        yield Reading(name, help, (), {(): float(value)})
