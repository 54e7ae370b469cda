"""The archive as a process, wired from its concrete parts. It has no database; its progress is in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from nats.aio.client import Client

from det_contracts import subjects
from det_contracts.metrics_shards import FURTHER_SHARDS
from services.archive.archiver import Archiver
from services.archive.cutting import Cutter, Limits
from services.archive.sealing import Sealer
from services.archive.settings import Settings, check
from services.kit import conditions, stateless_host
from services.kit.archive.saved import fetch_saved_positions
from services.kit.archive.settings import segments_of
from services.kit.cluster_monitor import OWNERS
from services.kit.lease import Lease
from services.kit.log_jetstream import JetStreamLog
from services.kit.process_metrics import Measures, Reading
from services.kit.self_watch import SelfWatch
from services.kit.settings import BadSettings
from services.kit.stateless_host import ProcessContext, ProcessParts

if TYPE_CHECKING:
    from services.kit.spans import Tracer

OWNER = subjects.ARCHIVE
WITH_DATABASE = tuple(owner for owner in OWNERS if owner != subjects.INTAKE)
POLL_EVERY_S = 1.0


async def serve(settings: Settings, tracer: Tracer | None) -> None:
    """Seal and cut until cancelled. Raises `BadSettings`."""
    check(settings)

    async def join(context: ProcessContext) -> ProcessParts:
        work = build_archiver(settings, context.connection, context.journal, context.lease)
        return ProcessParts(
            work=work,
            position=lambda: work.archived,
            readings=lambda: _readings(work),
            background=[_report_failure(work, context.watch)],
        )

    await stateless_host.serve(OWNER, settings, tracer, Measures(OWNER), join)


def build_archiver(settings: Settings, connection: Client, stream: JetStreamLog, lease: Lease) -> Archiver:
    """Build the archive's work from its concrete parts. Raises `BadSettings`."""
    segments = segments_of(settings)
    if segments is None:
        raise BadSettings("STEADFAST_ARCHIVE is not set")
    sealer = Sealer(stream, segments, count=settings.archive_segment_events)
    limits = Limits(keep_s=settings.archive_keep_days * 86400.0, keep_events=settings.archive_keep_events)
    # Of the shards, too, whether they exist or not: one that has never decided sets no bound.
    cutter = Cutter(stream, sealer, segments, limits, owners=(*OWNERS, *FURTHER_SHARDS))

    async def saved() -> Mapping[str, int]:
        # A shard that has never decided begins with an empty database, and reads the archive.
        shards = [
            shard for shard in FURTHER_SHARDS if await stream.last(subjects.decision(shard)) is not None
        ]
        return await fetch_saved_positions(connection, (*WITH_DATABASE, *shards))

    return Archiver(sealer, cutter, saved, interval_s=settings.archive_look_s, is_leader=lambda: lease.active)


async def _report_failure(work: Archiver, watch: SelfWatch) -> None:
    while True:
        failing = {"": "old events cannot be moved to the archive"} if work.failure else {}
        watch.conditions.set_condition(conditions.ARCHIVE_FAILS, failing, {"": work.failure})
        await asyncio.sleep(POLL_EVERY_S)


def _readings(archiver: Archiver) -> Iterable[Reading]:
    for name, help, value in (
        ("archived_position", "Position up to which CONTROL is archived", archiver.archived),
        ("removed_position", "Position up to which CONTROL is removed from the broker", archiver.removed),
        ("archive_fails", "1 while archiving fails", bool(archiver.failure)),
    ):
        yield Reading(name, help, (), {(): float(value)})
