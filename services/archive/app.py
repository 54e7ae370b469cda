"""The archive as a process: its real parts, joined. It has no database; how far it is is in the log."""

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
from services.archive.cutting import Cutter, Limits
from services.archive.sealing import Sealer
from services.archive.settings import Settings, check
from services.archive.work import Work
from services.kit import conditions
from services.kit.archive.saved import ask_saved
from services.kit.archive.settings import segments_of
from services.kit.cluster_look import OWNERS, ClusterLook
from services.kit.connection import closed_for_good, connect, leave, until_closed
from services.kit.health_signs import tell_signs
from services.kit.lease import Lease
from services.kit.log_jetstream import JetStreamLog
from services.kit.measures import Measures, Reading
from services.kit.self_watch import Facts, SelfWatch
from services.kit.settings import BadSettings

if TYPE_CHECKING:
    from services.kit.spans import Tracer

OWNER = subjects.ARCHIVE
WITH_DATABASE = tuple(owner for owner in OWNERS if owner != subjects.INTAKE)
LOOK_EVERY_S = 1.0

log = structlog.get_logger()


async def serve(settings: Settings, tracer: Tracer | None) -> None:
    """Seal and cut until cancelled; raises `BadSettings`."""
    check(settings)
    measures = Measures(OWNER)
    watch = SelfWatch(OWNER, settings, measures)
    async with AsyncExitStack() as stack:
        if tracer is not None:
            stack.callback(tracer.flush)
        stack.enter_context(watch.shown())
        watch.begin("waiting for the broker")
        connection = await connect(settings, OWNER)
        stack.push_async_callback(leave, connection)
        stream = JetStreamLog(connection)
        replica = uuid.uuid4().hex[:8]
        lease = Lease(connection, OWNER, replica, replicas=settings.stream_replicas)
        work = joined(settings, connection, stream, lease)
        look = ClusterLook(connection)
        measures.read(lambda: _readings(work, lease, connection))
        stack.enter_context(watch.watching_loop())
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(until_closed(connection))
                tasks.create_task(lease.hold())
                tasks.create_task(_follow(lease, work))
                tasks.create_task(work.run())
                tasks.create_task(look.run())
                tasks.create_task(_tell(work, watch))
                tasks.create_task(tell_signs(connection, watch.conditions, replica))
                tasks.create_task(watch.run(_facts(connection, look, work, stream)))
                log.info("service.ready")
        except* ConnectionClosedError:
            raise closed_for_good(connection) from None


def joined(settings: Settings, connection: Client, stream: JetStreamLog, lease: Lease) -> Work:
    """The archive's work with its real parts; raises `BadSettings`."""
    segments = segments_of(settings)
    if segments is None:
        raise BadSettings("STEADFAST_ARCHIVE is not set")
    sealer = Sealer(stream, segments, count=settings.archive_segment_events)
    limits = Limits(keep_s=settings.archive_keep_days * 86400.0, keep_events=settings.archive_keep_events)
    cutter = Cutter(stream, sealer, segments, limits, owners=OWNERS)

    async def saved() -> Mapping[str, int]:
        return await ask_saved(connection, WITH_DATABASE)

    return Work(sealer, cutter, saved, look_s=settings.archive_look_s, leading=lambda: lease.active)


async def _follow(lease: Lease, work: Work) -> None:
    while True:
        await lease.wait_for_change()
        if lease.active:
            log.info("service.leads")
        work.lead()


async def _tell(work: Work, watch: SelfWatch) -> None:
    while True:
        failing = {"": "old events cannot be moved to the archive"} if work.failure else {}
        watch.conditions.tell(conditions.ARCHIVE_FAILS, failing, {"": work.failure})
        await asyncio.sleep(LOOK_EVERY_S)


def _facts(connection: Client, look: ClusterLook, work: Work, stream: JetStreamLog) -> Facts:
    return Facts(
        connection=connection,
        look=look,
        starting=str,
        behind=dict,
        position=lambda _: work.archived,
        reads_all=False,
        refusals=stream.refusals,
    )


def _readings(work: Work, lease: Lease, connection: Client) -> Iterable[Reading]:
    for name, help, value in (
        ("archived_position", "Up to where CONTROL lies in the archive", work.archived),
        ("removed_position", "Up to where CONTROL is removed from the broker", work.removed),
        ("archive_fails", "1 while it cannot do what there is to do", bool(work.failure)),
        ("leads", "1 while this replica works", lease.active),
        ("ready", "1 once it can take over", True),
        ("broker_connected", "1 while connected to the broker", connection.is_connected),
    ):
        yield Reading(name, help, (), {(): float(value)})
