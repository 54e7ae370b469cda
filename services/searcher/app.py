"""Assembles the searcher service."""

from __future__ import annotations

import asyncio

from det_contracts.news import AskBest, AskMetadata, AskOperations
from det_contracts.queries import PreviewSearch
from services.kit.authz.commands import judged
from services.kit.authz.people import with_people
from services.kit.host import Service
from services.kit.parts import Parts
from services.kit.rules import Rules
from services.kit.script_questions import News, hear_scripts
from services.searcher.commands import COMMANDS
from services.searcher.domain import State, evolve
from services.searcher.domain.roots import ROOTS
from services.searcher.heartbeats import watch
from services.searcher.measures import readings
from services.searcher.news import say_best, say_metadata, say_operations
from services.searcher.preview import PREVIEW
from services.searcher.queries import ANSWERS
from services.searcher.react import due, expire, react
from services.searcher.rights import directory

RULES = Rules(
    owner="searcher",
    fold_version=4,
    state=State,
    roots=ROOTS,
    evolve=with_people(evolve),
    react=react,
    commands=judged(COMMANDS, directory),
    answers=ANSWERS,
    due=due,
    expire=expire,
)


async def _beside(parts: Parts) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_answer_scripts(parts))
        tasks.create_task(watch(parts))


async def _answer_scripts(parts: Parts) -> None:
    news = News(parts.saver)
    await parts.runner.ready.wait()
    await hear_scripts(
        parts.answerer,
        {
            AskOperations: say_operations(parts.runner, news),
            AskBest: say_best(parts.runner, parts.asker),
            AskMetadata: say_metadata(parts.runner, parts.asker),
        },
    )


SERVICE = Service(RULES, extra=_beside, readings=readings, heavy={PreviewSearch: PREVIEW})
