"""Builds and starts the gateway service."""

from __future__ import annotations

import asyncio
from functools import partial

from det_contracts import subjects
from services.catalogue import gathers, trial_sources
from services.catalogue.catalogue import Catalogue
from services.catalogue.domain import State, evolve
from services.catalogue.domain.roots import ROOTS
from services.catalogue.log_end import LogEnd
from services.catalogue.peers import Peers
from services.catalogue.rights import Directory
from services.catalogue.store import delete_rows, write_rows
from services.gateway.http.server import (
    application,
    listening_socket,
    prepare,
    raise_connection_limit,
    serve,
)
from services.gateway.starting import authz_mode, first_password
from services.kit import task_tokens
from services.kit.authz.commands import add_access_checks
from services.kit.cancellation import cancel_and_wait
from services.kit.conditions import STARTING
from services.kit.health_reports import HealthReports
from services.kit.log_jetstream import ACK_TIMEOUT_S
from services.kit.parts import Parts, settings_of
from services.kit.rules import Rules
from services.kit.sealing import sealer_from
from services.kit.service import Service
from services.kit.tls import server_context
from services.live import Live
from services.people.commands import COMMANDS
from services.rest_requests import task_defaults
from services.rest_requests.backend import Backend
from services.rest_requests.cluster_health import ClusterHealth
from services.rest_requests.settings import (
    Settings,
    blob_store,
    default_storage,
    disks,
    signing_key,
)
from services.web.connection import Connections

REBUILD_PATIENCE_S = 600.0
"""How long to wait at startup for lost tables to catch up with the fold."""

RULES = Rules(
    owner="gateway",
    fold_version=16,
    state=State,
    evolve=evolve,
    # It reads all events, since it also keeps what people did, and which messages cannot be read.
    reads=None,
    # It decides on commands only; nothing follows from the state by itself.
    react=lambda _, __: (),
    commands=add_access_checks({**COMMANDS, **gathers.COMMANDS, **trial_sources.COMMANDS}, Directory),
    roots=ROOTS,
)


async def end_of_log(parts: Parts) -> int:
    """Return the last position of CONTROL.

    Raises `ConnectionError` immediately if the broker is not connected, or `TimeoutError`.
    """
    if not parts.connection.is_connected:
        raise ConnectionError("the broker cannot be reached")
    # Not STREAM.INFO, which takes several times as long while messages are stored (decision 90), and every
    # request waits for it. The stream's leader answers, never a replica that is behind.
    async with asyncio.timeout(ACK_TIMEOUT_S):
        return await parts.stream.end(subjects.CONTROL, after=parts.runner.positions[subjects.CONTROL])


async def serve_http(parts: Parts) -> None:
    """Start serving once the whole log is folded, so that the first answer is complete."""
    settings = settings_of(parts, Settings)
    tls = server_context(settings)
    parts.starting = "writing what lists are read from"
    catalogue = Catalogue(parts.runner, parts.saver, parts.database, LogEnd(partial(end_of_log, parts)))
    live = Live(catalogue, parts.journal, parts.saver.folded_position)
    parts.measures.register(live.readings)
    storage = default_storage(settings)
    monitored_disks = disks(settings, storage)
    parts.measures.register(monitored_disks.readings, monitored_disks.refresh)
    signs = HealthReports()
    await signs.subscribe(parts.stranger_connection)
    backend = Backend(
        settings=settings,
        catalogue=catalogue,
        live=live,
        peers=Peers(parts.bus_client, catalogue),
        journal=parts.journal,
        blobs=blob_store(settings),
        token_key=signing_key(settings),
        task_key=task_tokens.key_from(settings.task_key),
        sealer=sealer_from(settings.sealing_key),
        storage=storage,
        measures=parts.measures,
        health=ClusterHealth(parts.conditions, signs, parts.lag),
        tracer=parts.tracer,
        disks=monitored_disks,
    )
    # Fail at startup if the login provider or the pool defaults are misconfigured.
    _ = backend.provider, task_defaults.read(settings.pools)
    await parts.runner.ready.wait()
    # The fold may be far ahead of tables that are being rebuilt, and a list would look empty.
    await parts.saver.wait_for_position(catalogue.position, within_s=REBUILD_PATIENCE_S)
    parts.starting = "giving the first users a password"
    await first_password.apply(settings, catalogue, backend.peers)
    parts.starting = "stating how rights are judged"
    await authz_mode.apply(settings, catalogue, backend.peers)
    # In this order: what is folded in between is then in the record, and a page that reconnects misses
    # nothing.
    live.start_recording()
    parts.saver.watch(live.notify_changes, live.notify_reload)
    parts.measures.register(backend.limits.readings)
    parts.measures.register(backend.logins.readings)
    parts.measures.register(backend.followed_logs.tails.readings)
    connections = Connections(min(settings.connections, raise_connection_limit()), settings.connections_each)
    parts.measures.register(connections.readings)
    parts.starting = "preparing its routes"
    await asyncio.to_thread(prepare)
    # Only now: a load balancer that finds the port open sends requests.
    listener = listening_socket(settings.host, settings.port)
    parts.starting = ""
    # Clear the "starting" condition first, so that the health page agrees with the first answer.
    parts.conditions.set_condition(STARTING, {})
    disk_reports = asyncio.create_task(monitored_disks.report_shortage(parts.conditions))
    try:
        await serve(application(backend), listener, connections, tls)
    finally:
        await cancel_and_wait(disk_reports)
        await backend.close()


SERVICE = Service(
    RULES,
    settings=Settings,
    projection=write_rows,
    clear_projection=delete_rows,
    background_tasks=serve_http,
    always_saves=True,
    preparation=prepare,
)
