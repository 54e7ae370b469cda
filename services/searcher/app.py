"""Assembles the searcher service."""

from __future__ import annotations

import asyncio

from det_contracts.queries import PreviewSearch
from det_contracts.script_queries import AskBest, AskMetadata, AskOperations
from services.kit.authz.commands import add_access_checks
from services.kit.authz.people import add_people_fold
from services.kit.parts import Parts
from services.kit.rules import Rules
from services.kit.script_requests import RecordWaiters, serve_scripts
from services.kit.service import Service
from services.searcher.commands import COMMANDS
from services.searcher.domain import State, evolve
from services.searcher.domain.roots import ROOTS
from services.searcher.heartbeats import monitor_heartbeats
from services.searcher.measures import readings
from services.searcher.preview import PREVIEW
from services.searcher.queries import ANSWERS
from services.searcher.react import TIMERS, react
from services.searcher.react_ahead import may_react_ahead
from services.searcher.rights import directory
from services.searcher.script_answers import (
    best_validation_handler,
    checkpoint_metadata_handler,
    operations_handler,
)

FOLD = add_people_fold(evolve)
RULES = Rules(
    owner="searcher",
    fold_version=7,
    state=State,
    roots=ROOTS,
    evolve=FOLD,
    reads=FOLD.kinds,
    react=react,
    may_react_ahead=may_react_ahead,
    commands=add_access_checks(COMMANDS, directory),
    answers=ANSWERS,
    timers=TIMERS,
)


async def _run_background_tasks(parts: Parts) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_answer_scripts(parts))
        tasks.create_task(monitor_heartbeats(parts))


async def _answer_scripts(parts: Parts) -> None:
    news = RecordWaiters(parts.saver)
    await parts.runner.ready.wait()
    await serve_scripts(
        parts.bus_server,
        {
            AskOperations: operations_handler(parts.runner, news),
            AskBest: best_validation_handler(parts.runner, parts.bus_client, parts.journal),
            AskMetadata: checkpoint_metadata_handler(parts.runner, parts.bus_client, parts.journal),
        },
    )


SERVICE = Service(
    RULES,
    background_tasks=_run_background_tasks,
    readings=readings,
    offloaded_queries={PreviewSearch: PREVIEW},
)
