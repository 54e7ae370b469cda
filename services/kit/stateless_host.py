"""Hosts a process without a database: its whole state is in the log, and one replica works at a time.

Processes with a database are hosted by `services.kit.host`, which folds. Here nothing is folded: a part is
built from its connection, works while it leads, and watches itself like every process.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import structlog
from nats.aio.client import Client
from nats.errors import ConnectionClosedError

from services.kit.cluster_monitor import ClusterMonitor
from services.kit.connection import close, connect, connection_closed, raise_when_closed
from services.kit.health_reports import publish_health
from services.kit.lag import HasLag
from services.kit.lease import Lease
from services.kit.log_jetstream import JetStreamLog
from services.kit.log_progress import ProcessProgress, serve_log_progress
from services.kit.process_metrics import Measures, Reading
from services.kit.self_watch import SelfWatch, WatchSources
from services.kit.service_subjects import service_inbox
from services.kit.settings import ServiceSettings

if TYPE_CHECKING:
    from services.kit.spans import Tracer

log = structlog.get_logger()


class LeaderWork(Protocol):
    """The purpose of a process."""

    def on_leadership_change(self) -> None:
        """Handle a possible change of leadership."""

    async def run(self) -> None:
        """Work whenever this replica leads, until cancelled."""


@dataclass(frozen=True)
class ProcessContext:
    """What a process has once it is connected."""

    owner: str
    settings: ServiceSettings
    watch: SelfWatch
    connection: Client
    journal: JetStreamLog
    lease: Lease
    replica: str
    """Unique among all replicas that ever existed."""
    stack: AsyncExitStack
    """Closed when the process ends."""

    async def connect(self, name: str) -> Client:
        """Open another connection, which the broker shows under a name of its own."""
        opened = await connect(self.settings, name, service_inbox(self.owner))
        self.stack.push_async_callback(close, opened)
        return opened


@dataclass(frozen=True)
class ProcessParts:
    """The part of a process that is specific to it."""

    work: LeaderWork
    position: Callable[[], int]
    """Its position in the stream that it processes."""
    readings: Callable[[], Iterable[Reading]]
    """Its own metrics, beside those common to all."""
    lag: Callable[[], Mapping[str, HasLag]] = dict
    """Per stream, the remaining work."""
    background: Sequence[Coroutine[Any, Any, None]] = ()
    """Coroutines that run until the process ends."""


BuildParts = Callable[[ProcessContext], Awaitable[ProcessParts]]


async def serve(
    owner: str, settings: ServiceSettings, tracer: Tracer | None, measures: Measures, build: BuildParts
) -> None:
    """Run a process until cancelled, with the part that `build` builds once there is a connection."""
    watch = SelfWatch(owner, settings, measures)
    async with AsyncExitStack() as stack:
        if tracer is not None:
            stack.callback(tracer.flush)
        # Before the broker is there, so that a process that waits for it can say so.
        stack.enter_context(watch.serve_pages())
        context = await _connect(owner, settings, watch, stack)
        parts = await build(context)
        measures.register(lambda: (*parts.readings(), *_readings(context)))
        stack.enter_context(watch.watch_loop())
        try:
            await serve_log_progress(
                context.connection,
                owner,
                lambda: ProcessProgress(context.replica, context.lease.active, watch.progress),
            )
            await _run(context, parts)
        except* ConnectionClosedError:
            raise connection_closed(context.connection) from None


async def _connect(
    owner: str, settings: ServiceSettings, watch: SelfWatch, stack: AsyncExitStack
) -> ProcessContext:
    connection = await connect(settings, owner, service_inbox(owner))
    stack.push_async_callback(close, connection)
    replica = uuid.uuid4().hex[:8]
    lease = Lease(connection, owner, replica, replicas=settings.stream_replicas)
    return ProcessContext(owner, settings, watch, connection, JetStreamLog(connection), lease, replica, stack)


async def _run(context: ProcessContext, parts: ProcessParts) -> None:
    look = ClusterMonitor(context.connection)
    facts = WatchSources(
        connection=context.connection,
        look=look,
        starting=str,
        lag=parts.lag,
        position=lambda _: parts.position(),
        reads_all=False,
        refusals=context.journal.refusals,
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(raise_when_closed(context.connection))
        tasks.create_task(context.lease.hold())
        tasks.create_task(_watch_leadership(context.lease, parts.work))
        tasks.create_task(parts.work.run())
        for other in parts.background:
            tasks.create_task(other)
        tasks.create_task(look.run())
        tasks.create_task(publish_health(context.connection, context.watch.conditions, context.replica))
        tasks.create_task(context.watch.run(facts))
        log.info("service.ready")


async def _watch_leadership(lease: Lease, work: LeaderWork) -> None:
    while True:
        await lease.wait_for_change()
        if lease.active:
            log.info("service.leads")
        work.on_leadership_change()


def _readings(context: ProcessContext) -> Iterable[Reading]:
    for name, help, value in (
        ("leads", "1 while this replica works", context.lease.active),
        ("ready", "1 once it can take over", True),
        ("broker_connected", "1 while connected to the broker", context.connection.is_connected),
    ):
        yield Reading(name, help, (), {(): float(value)})
