"""Assembles the metrics service."""

from __future__ import annotations

import asyncio

from det_contracts import subjects
from det_contracts.script_queries import AskRefusals
from services.kit.host import Service
from services.kit.parts import Parts
from services.kit.rules import Rules
from services.kit.script_requests import RecordWaiters, serve_scripts
from services.metrics.answers import ANSWERS
from services.metrics.commands import COMMANDS
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
from services.metrics.store import project
from services.metrics.trimming import drop_points, trim_logs

RULES = Rules(
    owner="metrics",
    state=State,
    evolve=evolve,
    react=react,
    commands=COMMANDS,
    answers=ANSWERS,
    streams={
        subjects.CONTROL: (),
        subjects.REPORTS: (),
        subjects.LOGS: (),
    },
    decode={subjects.REPORTS: read_reports, subjects.LOGS: read_logs},
    roots=ROOTS,
)


async def _run_background_tasks(parts: Parts) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(settle_ended_trials(parts))
        tasks.create_task(_answer_scripts(parts))
        tasks.create_task(trim_logs(parts))
        tasks.create_task(drop_points(parts))


async def _answer_scripts(parts: Parts) -> None:
    news = RecordWaiters(parts.saver)
    await parts.runner.ready.wait()
    await serve_scripts(parts.bus_server, {AskRefusals: refusals_handler(parts.runner, news)})


SERVICE = Service(
    RULES,
    settings=MetricsSettings,
    projection=project,
    read_model_queries=READS,
    background_tasks=_run_background_tasks,
    backlog_limit=500,
    measures=BatchCounters,
)
