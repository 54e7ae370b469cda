"""Assembles the metrics service."""

from __future__ import annotations

import asyncio

from det_contracts import subjects
from det_contracts.news import AskRefusals
from services.kit.host import Service
from services.kit.parts import Parts
from services.kit.rules import Rules
from services.kit.script_questions import News, hear_scripts
from services.metrics.answers import ANSWERS
from services.metrics.commands import COMMANDS
from services.metrics.domain import State, evolve
from services.metrics.domain.roots import ROOTS
from services.metrics.logs.reading import read_logs
from services.metrics.measures import Counted
from services.metrics.news import say_refusals
from services.metrics.queries import READS
from services.metrics.react import react
from services.metrics.reading import read_reports
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


async def _beside(parts: Parts) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(settle_ended_trials(parts))
        tasks.create_task(_answer_scripts(parts))
        tasks.create_task(trim_logs(parts))
        tasks.create_task(drop_points(parts))


async def _answer_scripts(parts: Parts) -> None:
    news = News(parts.saver)
    await parts.runner.ready.wait()
    await hear_scripts(parts.answerer, {AskRefusals: say_refusals(parts.runner, news)})


SERVICE = Service(
    RULES,
    settings=MetricsSettings,
    project=project,
    reads=READS,
    extra=_beside,
    backlog=500,
    measures=Counted,
)
