"""Assembles the scheduler service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from det_contracts.news import AskHolder, AskLeave
from services.kit import task_tokens
from services.kit.authz.commands import judged
from services.kit.authz.people import with_people
from services.kit.bus import name_of
from services.kit.host import Service
from services.kit.parts import Parts, settings_of
from services.kit.rules import Call, Rules
from services.kit.script_questions import News, hear_scripts
from services.kit.settings import ServiceSettings
from services.scheduler.commands import COMMANDS
from services.scheduler.consumers import Consumers
from services.scheduler.domain import State, evolve
from services.scheduler.heartbeats import RECONNECT_WAIT_S, watch
from services.scheduler.measures import readings
from services.scheduler.news import say_holder, say_leave
from services.scheduler.orders import OrdersWriter
from services.scheduler.pools import read_pools
from services.scheduler.queries import ANSWERS
from services.scheduler.react import due, expire, react
from services.scheduler.rights import directory

RULES = Rules(
    owner="scheduler",
    fold_version=5,
    state=State,
    evolve=with_people(evolve),
    react=react,
    commands=judged(COMMANDS, directory),
    answers=ANSWERS,
    due=due,
    expire=expire,
)


@dataclass(frozen=True)
class Settings(ServiceSettings):
    """The scheduler's settings beyond those common to all services."""

    reconnect_wait_s: float = RECONNECT_WAIT_S
    """How long a worker may be out of contact before its runs are restarted elsewhere, in seconds."""
    task_key: Path | None = None
    """File with the key that signs the tokens of runs; the gateway uses the same key.

    None: runs cannot use the REST API.
    """
    pools: Path | None = None
    """File with the resource pool configuration.

    None: a single pool `default` with default settings, plus any pools that workers name.
    """


async def _beside(parts: Parts) -> None:
    settings = settings_of(parts, Settings)
    orders = OrdersWriter(parts, Consumers(parts.connection).make, _tokens(settings))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(orders.run())
        tasks.create_task(_answer_scripts(parts))
        tasks.create_task(watch(parts, settings.reconnect_wait_s, orders.is_told, orders.call_back))
        if settings.pools is not None:
            # The command waits until this replica leads. Settings that are already in effect produce no
            # event.
            tasks.create_task(_configure(parts, settings.pools))


def _tokens(settings: Settings) -> Callable[[str], str]:
    """Return the function that makes a run's token. Raises `BadSettings`."""
    key = task_tokens.key_from(settings.task_key)
    return (lambda _: "") if key is None else partial(task_tokens.issue, key)


async def _answer_scripts(parts: Parts) -> None:
    news = News(parts.saver)
    await parts.runner.ready.wait()
    await hear_scripts(parts.answerer, {AskLeave: say_leave(parts.runner, news)})
    await parts.answerer.hear_workers(name_of(AskHolder), say_holder(parts.runner))


async def _configure(parts: Parts, path: Path) -> None:
    await parts.runner.command(read_pools(path), Call("configuration", time.time()))


SERVICE = Service(RULES, settings=Settings, extra=_beside, readings=readings)
