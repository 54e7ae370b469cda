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

from services.kit.cluster_look import ClusterLook
from services.kit.connection import closed_for_good, connect, leave, until_closed
from services.kit.health_signs import tell_signs
from services.kit.lag import Left
from services.kit.lease import Lease
from services.kit.log_jetstream import JetStreamLog
from services.kit.process_metrics import Measures, Reading
from services.kit.self_watch import Facts, SelfWatch
from services.kit.settings import ServiceSettings

if TYPE_CHECKING:
    from services.kit.spans import Tracer

log = structlog.get_logger()


class Work(Protocol):
    """The purpose of a process."""

    def lead(self) -> None:
        """Handle a possible change of leadership."""

    async def run(self) -> None:
        """Work whenever this replica leads, until cancelled."""


@dataclass(frozen=True)
class Ground:
    """What a process has once it is connected."""

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
        """Open another connection with the credentials of `name`."""
        opened = await connect(self.settings, name)
        self.stack.push_async_callback(leave, opened)
        return opened


@dataclass(frozen=True)
class Joined:
    """The part of a process that is specific to it."""

    work: Work
    position: Callable[[], int]
    """Its position in the stream that it processes."""
    readings: Callable[[], Iterable[Reading]]
    """Its own metrics, beside those common to all."""
    behind: Callable[[], Mapping[str, Left]] = dict
    """Per stream, the remaining work."""
    beside: Sequence[Coroutine[Any, Any, None]] = ()
    """Coroutines that run until the process ends."""


Join = Callable[[Ground], Awaitable[Joined]]


async def serve(
    owner: str, settings: ServiceSettings, tracer: Tracer | None, measures: Measures, join: Join
) -> None:
    """Run a process until cancelled, with the part that `join` builds once there is a connection."""
    watch = SelfWatch(owner, settings, measures)
    async with AsyncExitStack() as stack:
        if tracer is not None:
            stack.callback(tracer.flush)
        stack.enter_context(watch.shown())
        ground = await _ground(owner, settings, watch, stack)
        joined = await join(ground)
        measures.read(lambda: (*joined.readings(), *_readings(ground)))
        stack.enter_context(watch.watching_loop())
        try:
            await _run(ground, joined)
        except* ConnectionClosedError:
            raise closed_for_good(ground.connection) from None


async def _ground(owner: str, settings: ServiceSettings, watch: SelfWatch, stack: AsyncExitStack) -> Ground:
    watch.begin("waiting for the broker")
    connection = await connect(settings, owner)
    stack.push_async_callback(leave, connection)
    replica = uuid.uuid4().hex[:8]
    lease = Lease(connection, owner, replica, replicas=settings.stream_replicas)
    return Ground(settings, watch, connection, JetStreamLog(connection), lease, replica, stack)


async def _run(ground: Ground, joined: Joined) -> None:
    look = ClusterLook(ground.connection)
    facts = Facts(
        connection=ground.connection,
        look=look,
        starting=str,
        behind=joined.behind,
        position=lambda _: joined.position(),
        reads_all=False,
        refusals=ground.journal.refusals,
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(until_closed(ground.connection))
        tasks.create_task(ground.lease.hold())
        tasks.create_task(_follow(ground.lease, joined.work))
        tasks.create_task(joined.work.run())
        for other in joined.beside:
            tasks.create_task(other)
        tasks.create_task(look.run())
        tasks.create_task(tell_signs(ground.connection, ground.watch.conditions, ground.replica))
        tasks.create_task(ground.watch.run(facts))
        log.info("service.ready")


async def _follow(lease: Lease, work: Work) -> None:
    while True:
        await lease.wait_for_change()
        if lease.active:
            log.info("service.leads")
        work.lead()


def _readings(ground: Ground) -> Iterable[Reading]:
    for name, help, value in (
        ("leads", "1 while this replica works", ground.lease.active),
        ("ready", "1 once it can take over", True),
        ("broker_connected", "1 while connected to the broker", ground.connection.is_connected),
    ):
        yield Reading(name, help, (), {(): float(value)})
