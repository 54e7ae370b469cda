"""Runs one service as a process. This is the only place where its concrete parts are chosen and wired."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
import structlog
from nats.aio.client import Client
from nats.aio.subscription import Subscription
from nats.errors import ConnectionClosedError
from sqlalchemy.exc import OperationalError

from det_contracts import commands, subjects
from services.kit import conditions, logging, migrate
from services.kit.archive.saved import tell_saved
from services.kit.archive.settings import whole_log
from services.kit.bus import PATIENCE_S, Answerer, Asker
from services.kit.cluster_look import ClusterLook
from services.kit.connection import closed_for_good, connect, leave, until_closed
from services.kit.database import Database, in_words
from services.kit.disk_space import stream_limit
from services.kit.health_signs import tell_signs
from services.kit.job import Job
from services.kit.lag import SAVING
from services.kit.lease import Lease
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.metric_collectors import Surroundings
from services.kit.offload import Offload
from services.kit.parts import Parts
from services.kit.process_metrics import Measures, Reading
from services.kit.rebuild import Rebuild
from services.kit.rules import Call, Rules
from services.kit.runner import Runner
from services.kit.self_watch import Facts, SelfWatch
from services.kit.settings import ServiceSettings
from services.kit.snapshot import Snapshot
from services.kit.snapshot_store import BACKLOG_LIMIT, DatabaseSaver, Project
from services.kit.until_stopped import run_until_stopped

if TYPE_CHECKING:
    from services.kit.spans import Tracer

DATABASE_AGAIN_S = 1.0
"""Pause in seconds before another attempt to open the database."""

log = structlog.get_logger()


@dataclass(frozen=True)
class Service:
    """The parts of a service that it does not share with the others."""

    rules: Rules[Any]
    settings: type[ServiceSettings] = ServiceSettings
    project: Project | None = None
    """Writes the read model beside the snapshot."""
    empty: Callable[[sa.Connection], None] | None = None
    """Clears the read model. Set only if it follows from CONTROL alone and can be rebuilt."""
    reads: Mapping[type, Callable[[sa.Connection, Any], Any]] = field(default_factory=dict)
    """One function per query that the read model answers."""
    heavy: Mapping[type, Job] = field(default_factory=dict)
    """Slow queries that need no state; each is answered in another process."""
    extra: Callable[[Parts], Awaitable[None]] | None = None
    """Coroutine run beside the runner for the life of the service: HTTP, heartbeats."""
    always_saves: bool = False
    """True if every replica has its own database (the gateway); otherwise only the leader saves."""
    backlog: int = BACKLOG_LIMIT
    """Number of unsaved events allowed; small if single events are large."""
    measures: type[Measures] = Measures
    """Metrics counted beside those common to all services."""
    readings: Callable[[Any], Iterable[Reading]] | None = None
    """Prometheus readings derived from the folded state."""


def main(service: Service) -> None:
    """Run a service until SIGTERM or SIGINT. Exits with status 2 if the settings are invalid."""
    run_until_stopped(service.rules.owner, service.settings, partial(serve, service))


async def serve(service: Service, settings: ServiceSettings, tracer: Tracer | None) -> None:
    """Run one service from its first connection to its last commit."""
    measures = service.measures(service.rules.owner)
    watch = SelfWatch(service.rules.owner, settings, measures)
    async with AsyncExitStack() as stack:
        if tracer is not None:
            stack.callback(tracer.flush)
        stack.enter_context(watch.shown())
        watch.begin("waiting for the broker")
        connection = await connect(settings, service.rules.owner)
        stack.push_async_callback(leave, connection)
        database = await _opened_database(settings.database_url, service.rules.owner, watch)
        stack.callback(database.close)
        watch.begin("waiting for the streams of the broker")
        stream = await _open_log(service, settings, connection, database)
        lease = Lease(
            connection, service.rules.owner, uuid.uuid4().hex[:8], replicas=settings.stream_replicas
        )
        parts = _joined(service, settings, connection, stream, database, lease, measures, watch, tracer)
        stack.push_async_callback(parts.offload.close)
        lease.wanted = lambda: parts.runner.standstill.failed is None
        rebuild = Rebuild(service.rules.owner, database.damaged)
        await rebuild.look(stream, database, _snapshot(service), service.rules.streams)
        parts.measures.read(rebuild.readings)
        # From here until all tasks end, other tasks depend on this event loop.
        stack.enter_context(watch.watching_loop())
        _read_numbers(service, parts)
        await logging.look_back(parts.journal)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(until_closed(connection))
                tasks.create_task(database.until_damaged())
                tasks.create_task(parts.runner.run())
                tasks.create_task(lease.hold())
                tasks.create_task(_hear(service, parts, lease))
                tasks.create_task(parts.cluster_look.run())
                tasks.create_task(tell_signs(connection, watch.conditions, uuid.uuid4().hex[:8]))
                tasks.create_task(watch.run(_facts(service, parts, rebuild)))
                if service.extra is not None:
                    tasks.create_task(_as_coroutine(service.extra(parts)))  # noqa: S610 - not Django's
        except* ConnectionClosedError:
            raise closed_for_good(connection) from None


async def _open_log(
    service: Service, settings: ServiceSettings, connection: Client, database: Database
) -> JetStreamLog:
    """Open the log and create missing streams. Raises `LogTruncated`.

    Stream settings are the intake's responsibility.
    """
    snapshot = _snapshot(service)
    known, marks = await database.read(lambda c: (snapshot.known(c), snapshot.marks(c)))
    await ensure_streams(
        connection.jetstream(),
        replicas=settings.stream_replicas,
        keep_bytes=stream_limit(settings.stream_keep_mib, settings.log_disk),
        # Without an explicit limit, a start must not discard stored messages.
        shrink=settings.stream_keep_mib > 0,
        known=known,
        adjust=False,
    )
    return JetStreamLog(connection, marks)


def _snapshot(service: Service) -> Snapshot:
    rules = service.rules
    return Snapshot(rules.owner, rules.state, rules.fold_version)


async def _opened_database(url: str, owner: str, watch: SelfWatch) -> Database:
    """Open the database, retrying until it is reachable: a process that exited could not report the cause."""
    while True:
        watch.begin("opening the database")
        try:
            database = await asyncio.to_thread(migrate.open_database, url, owner)
        except OperationalError as error:
            reason = {"": "the database cannot be opened"}
            watch.conditions.tell(conditions.DATABASE_FAILS, reason, {"": in_words(error)})
            await asyncio.sleep(DATABASE_AGAIN_S)
            continue
        watch.conditions.tell(conditions.DATABASE_FAILS, {})
        return database


def _joined(
    service: Service,
    settings: ServiceSettings,
    connection: Client,
    stream: JetStreamLog,
    database: Database,
    lease: Lease,
    measures: Measures,
    watch: SelfWatch,
    tracer: Tracer | None,
) -> Parts:
    rules, journal = service.rules, whole_log(stream, settings)

    def leads() -> bool:
        return lease.active

    saver = DatabaseSaver(
        database,
        rules.owner,
        rules.state,
        fold_version=rules.fold_version,
        project=service.project,
        empty=service.empty,
        leading=(lambda: True) if service.always_saves else leads,
        backlog=service.backlog,
        measures=measures,
        marks=lambda: stream.marks,
        roots=rules.roots,
    )
    return Parts(
        settings=settings,
        connection=connection,
        stream=stream,
        journal=journal,
        database=database,
        saver=saver,
        runner=Runner(
            rules,
            journal,
            saver,
            leading=leads,
            measures=measures,
            tracer=tracer,
            print_as=logging.NOW.heed,
        ),
        asker=Asker(connection),
        offload=Offload(each=2, each_waiting=32),
        answerer=Answerer(connection, rules.owner, measures, tracer),
        leading=leads,
        measures=measures,
        conditions=watch.conditions,
        cluster_look=ClusterLook(connection),
        tracer=tracer,
    )


def _read_numbers(service: Service, parts: Parts) -> None:
    """Register the values that are read only when Prometheus scrapes."""
    around, readings = Surroundings(parts), service.readings
    parts.measures.read(around.readings, around.look)
    if readings is not None:
        parts.measures.read(lambda: readings(parts.runner.state))


def _facts(service: Service, parts: Parts, rebuild: Rebuild) -> Facts:
    """Return the sources from which the health watch reads this service's condition."""
    runner, saver = parts.runner, parts.saver

    def starting() -> str:
        folding = f"folding the log{rebuild.wait()}: {_places(runner.positions)}"
        return parts.starting if runner.ready.is_set() else folding

    def position(what: str) -> int:
        return saver.saved.get(subjects.CONTROL, 0) if what == SAVING else runner.positions[what]

    return Facts(
        connection=parts.connection,
        look=parts.cluster_look,
        starting=starting,
        behind=lambda: runner.behind() | {SAVING: saver.behind},
        position=position,
        refusals=parts.stream.refusals,
        failing=lambda: parts.database.failure,
        parked=runner.parked_records,
        rebuilding=lambda: (
            "" if runner.ready.is_set() else rebuild.progress(runner.positions[subjects.CONTROL])
        ),
        failed=lambda: runner.standstill.failed,
        saves=lambda: service.always_saves or parts.leading(),
        deciding=runner.deciding,
    )


def _places(positions: Mapping[str, int]) -> str:
    return ", ".join(f"{stream} is at position {position}" for stream, position in positions.items())


async def _as_coroutine(work: Awaitable[None]) -> None:
    await work


async def _hear(service: Service, parts: Parts, lease: Lease) -> None:
    runner, rules = parts.runner, service.rules
    await runner.ready.wait()

    async def answer(query: Any, stream: str, position: int) -> tuple[int, Any]:
        await runner.reach(position, stream=stream)
        found = await runner.answer(query)
        return runner.positions["CONTROL"], found

    def read(kind: type) -> Callable[[Any, str, int], Awaitable[tuple[int, Any]]]:
        async def reply(query: Any, stream: str, position: int) -> tuple[int, Any]:
            await parts.saver.reach(position)
            return position, await parts.database.read(lambda c: service.reads[kind](c, query))

        return reply

    def work_out(job: Job) -> Callable[[Any, str, int], Awaitable[tuple[int, Any]]]:
        async def reply(query: Any, stream: str, position: int) -> tuple[int, Any]:
            return runner.positions["CONTROL"], await parts.offload.run("", job, query)

        return reply

    async def rule(command: Any, call: Call) -> tuple[int, Any]:
        return await runner.command(command, call, within_s=PATIENCE_S)

    def saved() -> int | None:
        writes = service.always_saves or lease.active
        return parts.saver.saved.get(subjects.CONTROL, 0) if writes else None

    await tell_saved(parts.connection, rules.owner, saved)
    await parts.answerer.hear_queries({k: answer for k in rules.answers if k not in service.heavy})
    await parts.answerer.hear_queries({k: work_out(job) for k, job in service.heavy.items()})
    if service.always_saves:
        await parts.answerer.hear_queries({k: read(k) for k in service.reads})
    asked = {kind: rule for kind in rules.commands if kind in commands.OWNER_OF}
    log.info("service.ready", position=runner.positions)
    heard: list[Subscription] = []
    led = False
    while True:
        if lease.active and not led:
            led = True
            heard = await parts.answerer.hear_commands(asked)
            if not service.always_saves:
                # Tables are current only on the replica that writes them.
                heard += await parts.answerer.hear_queries({k: read(k) for k in service.reads})
            log.info("service.leads")
            runner.lead()
        elif led and not lease.active:
            led = False
            for subscription in heard:
                await subscription.unsubscribe()
            heard = []
        await lease.wait_for_change()
