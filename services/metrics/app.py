"""Assembles the metrics service."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from det_contracts import subjects
from det_contracts.metrics_shards import OWNER, owner_of_shard, shard_subject
from det_contracts.script_queries import AskRefusals
from services.kit.bus import BusServer
from services.kit.parts import Parts, settings_of
from services.kit.rules import Rules
from services.kit.script_requests import RecordWaiters, serve_scripts
from services.kit.service import Service
from services.kit.settings import BadSettings, load
from services.metrics.answers import ANSWERS
from services.metrics.commands import COMMANDS
from services.metrics.copies.keeping import keep_copies
from services.metrics.copies.rebuilding import restore_or_rebuild
from services.metrics.domain import State, evolve
from services.metrics.domain.roots import ROOTS
from services.metrics.logs.reading import read_logs
from services.metrics.measures import BatchCounters
from services.metrics.queries import READS
from services.metrics.react import react
from services.metrics.reading import read_reports
from services.metrics.script_answers import refusals_handler
from services.metrics.settings import MetricsSettings
from services.metrics.settling import settle_ended_trials
from services.metrics.sharing.agreement import agree, holds_streams, skips_message
from services.metrics.sharing.front import serve_all_shards
from services.metrics.store import PROJECTED, project
from services.metrics.trimming import drop_points, trim_logs

RULES = Rules(
    owner=OWNER,
    state=State,
    evolve=evolve,
    reads=evolve.kinds | PROJECTED,
    react=react,
    commands=COMMANDS,
    answers=ANSWERS,
    streams={
        # All of CONTROL, though few of its events mean anything here: positions of decisions and fences need
        # every one.
        subjects.CONTROL: (),
        subjects.REPORTS: (),
        subjects.LOGS: (),
    },
    decode={subjects.REPORTS: read_reports, subjects.LOGS: read_logs},
    roots=ROOTS,
)


async def _run_background_tasks(parts: Parts) -> None:
    settings = settings_of(parts, MetricsSettings)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(agree(parts, settings))
        tasks.create_task(settle_ended_trials(parts))
        tasks.create_task(_answer_scripts(parts, settings))
        tasks.create_task(trim_logs(parts))
        tasks.create_task(drop_points(parts))
        tasks.create_task(keep_copies(parts))
        if settings.metrics_shards > 1:
            tasks.create_task(serve_all_shards(parts, [*READS, *ANSWERS]))


async def _answer_scripts(parts: Parts, settings: MetricsSettings) -> None:
    news = RecordWaiters(parts.saver)
    await parts.runner.ready.wait()
    queue = owner_of_shard(settings.metrics_shard)
    server = BusServer(parts.stranger_connection, OWNER, parts.measures, parts.tracer, queue=queue)
    handler = refusals_handler(parts.runner, news, settings.metrics_shard)
    await serve_scripts(server, {AskRefusals: handler})


def service_of(settings: MetricsSettings) -> Service:
    """The service as the settings ask for it: alone, or as one of several shards."""
    shard, shards = settings.metrics_shard, settings.metrics_shards
    rules = replace(
        RULES,
        owner=owner_of_shard(shard),
        react=partial(react, shard=shard),
        holds=partial(holds_streams, shards=shards),
        skips=partial(skips_message, shard=shard) if shards > 1 else None,
    )
    return Service(
        rules,
        folder=OWNER,
        asked_as=shard_subject(shard) if shards > 1 else "",
        settings=MetricsSettings,
        projection=project,
        projected=PROJECTED,
        read_model_queries=READS,
        restore=restore_or_rebuild,
        background_tasks=_run_background_tasks,
        # One message may hold thousands of reports, each with a row of its own.
        backlog_limit=500,
        measures=BatchCounters,
    )


SERVICE = service_of(MetricsSettings())


def configured(environment: Mapping[str, str]) -> Service:
    """The service as the environment asks for it. Invalid settings are reported when it is run."""
    try:
        return service_of(load(MetricsSettings, environment))
    # The process must come up far enough to say what is wrong with them.
    except BadSettings:
        return SERVICE
