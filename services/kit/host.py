"""Runs one service as a process. This is the only place where its concrete parts are chosen and wired."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from nats.aio.client import Client
from nats.aio.subscription import Subscription
from nats.errors import ConnectionClosedError
from sqlalchemy.exc import OperationalError

from det_contracts import commands, subjects
from services.kit import conditions, logging, migrate
from services.kit.archive.saved import serve_saved_position
from services.kit.archive.settings import log_with_archive
from services.kit.bus import PATIENCE_S, BusClient, BusServer
from services.kit.cluster_monitor import ClusterMonitor
from services.kit.connection import close, connect, connection_closed, raise_when_closed
from services.kit.database import Database, database_message
from services.kit.disk_space import stream_limit
from services.kit.flood_filter import FloodFilter
from services.kit.health_reports import publish_health
from services.kit.job import Job
from services.kit.lag import SAVING
from services.kit.lease import Lease
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.log_progress import ProcessProgress, serve_log_progress
from services.kit.metric_collectors import EnvironmentMetrics
from services.kit.offload import Offload
from services.kit.parts import Parts
from services.kit.process_metrics import Measures
from services.kit.rebuild import Rebuild
from services.kit.rules import Call
from services.kit.runner import Runner
from services.kit.self_watch import SelfWatch, WatchSources
from services.kit.service import Restoration, Service
from services.kit.service_process import run_service
from services.kit.service_subjects import service_inbox
from services.kit.settings import ServiceSettings
from services.kit.snapshot import Snapshot, furthest_positions

if TYPE_CHECKING:
    from services.kit.spans import Tracer

DATABASE_RETRY_S = 1.0
"""Pause in seconds before another attempt to open the database."""

log = structlog.get_logger()


def main(service: Service) -> None:
    """Run a service until SIGTERM or SIGINT. Exits with status 2 if the settings are invalid."""
    run_service(service.rules.owner, service.settings, partial(serve, service))


async def serve(service: Service, settings: ServiceSettings, tracer: Tracer | None) -> None:
    """Run one service from its first connection to its last commit."""
    measures = service.measures(service.rules.owner)
    watch = SelfWatch(service.rules.owner, settings, measures)
    async with AsyncExitStack() as stack:
        if tracer is not None:
            stack.callback(tracer.flush)
        stack.enter_context(watch.serve_pages())
        inbox = service_inbox(service.rules.owner)
        connection = await connect(settings, service.rules.owner, inbox)
        stack.push_async_callback(close, connection)
        # A connection of its own: whoever floods it delays neither the log nor the answers of other
        # services (decision 82).
        strangers = await connect(settings, f"{service.rules.owner} for strangers", inbox, FloodFilter())
        stack.push_async_callback(close, strangers)
        database = await _open_database(settings.database_url, service, watch)
        stack.callback(database.close)
        watch.set_starting("waiting for the streams of the broker")
        stream = await _open_log(service, settings, connection, database)
        if service.restore is not None:
            journal = log_with_archive(stream, settings)
            owner = service.rules.owner
            if await service.restore(
                Restoration(owner, settings, database, journal, watch, _snapshot(service))
            ):
                # Again, because the database now says which log it belongs to.
                stream = await _open_log(service, settings, connection, database)
        replica = uuid.uuid4().hex[:8]
        lease = Lease(connection, service.rules.owner, replica, replicas=settings.stream_replicas)
        parts = _build_parts(
            service, settings, connection, strangers, stream, database, lease, measures, watch, tracer
        )
        stack.push_async_callback(parts.offload.close)
        # A replica that stands still before an event gives its lease back: another release may be able to
        # fold it.
        lease.wanted = lambda: parts.runner.standstill.failed is None
        rebuild = Rebuild(service.rules.owner, database.damaged)
        await rebuild.check(stream, database, _snapshot(service), service.rules.streams)
        parts.measures.register(rebuild.readings)
        # From here until all tasks end, other tasks depend on this event loop.
        stack.enter_context(watch.watch_loop())
        _register_readings(service, parts)
        # A start from a snapshot does not fold what was set before it.
        await logging.apply_stored_settings(parts.journal)
        await serve_log_progress(
            connection,
            service.rules.owner,
            lambda: ProcessProgress(replica, lease.active, watch.progress),
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(raise_when_closed(connection))
                tasks.create_task(raise_when_closed(strangers))
                tasks.create_task(database.raise_when_damaged())
                tasks.create_task(parts.runner.run())
                tasks.create_task(lease.hold())
                tasks.create_task(_serve_requests(service, parts, lease))
                tasks.create_task(parts.cluster_monitor.run())
                tasks.create_task(publish_health(connection, watch.conditions, replica))
                tasks.create_task(watch.run(_watch_sources(service, parts, rebuild)))
                if service.background_tasks is not None:
                    tasks.create_task(_as_coroutine(service.background_tasks(parts)))
        except* ConnectionClosedError:
            raise connection_closed(connection) from None


async def _open_log(
    service: Service, settings: ServiceSettings, connection: Client, database: Database
) -> JetStreamLog:
    """Open the log and create missing streams. Raises `LogTruncated`.

    Stream settings are the intake's responsibility.
    """
    snapshot = _snapshot(service)
    read_positions, marks = await database.read(lambda c: (furthest_positions(c), snapshot.marks(c)))
    await ensure_streams(
        connection.jetstream(),
        replicas=settings.stream_replicas,
        keep_bytes=stream_limit(settings.stream_keep_mib, settings.log_disk),
        # Without an explicit limit, a start must not discard stored messages.
        shrink=settings.stream_keep_mib > 0,
        read_positions=read_positions,
        adjust=False,
    )
    return JetStreamLog(connection, marks)


def _snapshot(service: Service) -> Snapshot:
    rules = service.rules
    return Snapshot(rules.owner, rules.state, rules.fold_version)


async def _open_database(url: str, service: Service, watch: SelfWatch) -> Database:
    """Open the database, retrying until it is reachable: a process that exited could not report the cause."""
    while True:
        watch.set_starting("opening the database")
        try:
            owner, folder = service.rules.owner, service.folder
            database = await asyncio.to_thread(migrate.open_database, url, owner, folder)
        except OperationalError as error:
            reason = {"": "the database cannot be opened"}
            watch.conditions.set_condition(conditions.DATABASE_FAILS, reason, {"": database_message(error)})
            await asyncio.sleep(DATABASE_RETRY_S)
            continue
        watch.conditions.set_condition(conditions.DATABASE_FAILS, {})
        return database


def _build_parts(
    service: Service,
    settings: ServiceSettings,
    connection: Client,
    strangers: Client,
    stream: JetStreamLog,
    database: Database,
    lease: Lease,
    measures: Measures,
    watch: SelfWatch,
    tracer: Tracer | None,
) -> Parts:
    rules, journal = service.rules, log_with_archive(stream, settings)

    def leads() -> bool:
        return lease.active

    saver = service.saver(
        database,
        is_leader=(lambda: True) if service.always_saves else leads,
        measures=measures,
        marks=lambda: stream.marks,
    )
    return Parts(
        settings=settings,
        connection=connection,
        stranger_connection=strangers,
        stream=stream,
        journal=journal,
        database=database,
        saver=saver,
        runner=Runner(
            rules,
            journal,
            saver,
            is_leader=leads,
            measures=measures,
            tracer=tracer,
            apply_logging=logging.OUTPUT.apply,
        ),
        bus_client=BusClient(connection),
        offload=Offload(each=2, each_waiting=32),
        bus_server=BusServer(
            connection,
            service.asked_as or rules.owner,
            measures,
            tracer,
            stranger_connection=strangers,
        ),
        is_leader=leads,
        measures=measures,
        conditions=watch.conditions,
        cluster_monitor=ClusterMonitor(connection),
        tracer=tracer,
    )


def _register_readings(service: Service, parts: Parts) -> None:
    """Register the values that are read only when Prometheus scrapes."""
    around, readings = EnvironmentMetrics(parts), service.readings
    parts.measures.register(around.readings, around.refresh)
    if readings is not None:
        parts.measures.register(lambda: readings(parts.runner.state))


def _watch_sources(service: Service, parts: Parts, rebuild: Rebuild) -> WatchSources:
    """Return the sources from which the health watch reads this service's condition."""
    runner, saver = parts.runner, parts.saver

    def starting() -> str:
        folding = f"folding the log{rebuild.starting_note()}: {_describe_positions(runner.positions)}"
        return parts.starting if runner.ready.is_set() else parts.waiting or folding

    def position(what: str) -> int:
        return saver.saved_positions.get(subjects.CONTROL, 0) if what == SAVING else runner.positions[what]

    return WatchSources(
        connection=parts.connection,
        look=parts.cluster_monitor,
        starting=starting,
        lag=parts.lag,
        position=position,
        refusals=parts.stream.refusals,
        failing=lambda: parts.database.failure,
        parked=runner.decider.parked_records,
        rebuilding=lambda: (
            "" if runner.ready.is_set() else rebuild.progress(runner.positions[subjects.CONTROL])
        ),
        failed=lambda: runner.standstill.failed,
        saves=lambda: service.always_saves or parts.is_leader(),
        decision_progress=runner.decider.decision_progress,
    )


def _describe_positions(positions: Mapping[str, int]) -> str:
    return ", ".join(f"{stream} is at position {position}" for stream, position in positions.items())


async def _as_coroutine(work: Awaitable[None]) -> None:
    await work


async def answer_at(runner: Runner[Any], query: Any, stream: str, position: int) -> tuple[int, Any]:
    """Answer a query from a state that reaches a position. Raises `Refused`.

    Returns the position in CONTROL with the answer.
    """
    while True:
        await runner.wait_for_position(position, stream=stream)
        response = await runner.answer(query)
        # Its records may have had to be loaded, and the state may have been loaded anew meanwhile.
        if runner.positions.get(stream, position) >= position:
            return runner.positions[subjects.CONTROL], response


async def _serve_requests(service: Service, parts: Parts, lease: Lease) -> None:
    runner, rules = parts.runner, service.rules
    # Answers of a state that is still folding the past would be taken for the present.
    await runner.ready.wait()

    async def answer(query: Any, stream: str, position: int) -> tuple[int, Any]:
        return await answer_at(runner, query, stream, position)

    def read(kind: type) -> Callable[[Any, str, int], Awaitable[tuple[int, Any]]]:
        async def reply(query: Any, stream: str, position: int) -> tuple[int, Any]:
            if stream != subjects.CONTROL:
                await runner.wait_for_position(position, stream=stream)
                # The tables show all that is folded by then, of every stream.
                position = runner.positions[subjects.CONTROL]
            await parts.saver.wait_for_position(position)
            return position, await parts.database.read(lambda c: service.read_model_queries[kind](c, query))

        return reply

    def offloaded(job: Job) -> Callable[[Any, str, int], Awaitable[tuple[int, Any]]]:
        async def reply(query: Any, stream: str, position: int) -> tuple[int, Any]:
            return runner.positions["CONTROL"], await parts.offload.run("", job, query)

        return reply

    async def rule(command: Any, call: Call) -> tuple[int, Any]:
        return await runner.command(command, call, within_s=PATIENCE_S)

    def saved() -> int | None:
        writes = service.always_saves or lease.active
        return parts.saver.saved_positions.get(subjects.CONTROL, 0) if writes else None

    await serve_saved_position(parts.connection, rules.owner, saved)
    await parts.bus_server.serve_queries(
        {k: answer for k in rules.answers if k not in service.offloaded_queries}
    )
    await parts.bus_server.serve_queries({k: offloaded(job) for k, job in service.offloaded_queries.items()})
    if service.always_saves:
        await parts.bus_server.serve_queries({k: read(k) for k in service.read_model_queries})
    # The others are commands of the service to itself, which nobody may send.
    handlers = {kind: rule for kind in rules.commands if kind in commands.OWNER_OF}
    log.info("service.ready", position=runner.positions)
    subscriptions: list[Subscription] = []
    was_leader = False
    while True:
        if lease.active and not was_leader:
            was_leader = True
            subscriptions = await parts.bus_server.serve_commands(handlers)
            if not service.always_saves:
                # Tables are current only on the replica that writes them.
                subscriptions += await parts.bus_server.serve_queries(
                    {k: read(k) for k in service.read_model_queries}
                )
            log.info("service.leads")
            runner.on_leadership_change()
        elif was_leader and not lease.active:
            was_leader = False
            # At once: a command that arrives here would only be refused, while the new leader hears none of
            # it.
            for subscription in subscriptions:
                await subscription.unsubscribe()
            subscriptions = []
        await lease.wait_for_change()
