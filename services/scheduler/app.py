"""Assembles the scheduler service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from det_contracts.problems import Refused
from det_contracts.script_queries import AskHolder, AskLeave
from services.kit import task_tokens
from services.kit.authz.commands import add_access_checks
from services.kit.authz.people import add_people_fold
from services.kit.bus import name_of
from services.kit.parts import Parts, settings_of
from services.kit.rules import Call, Rules
from services.kit.script_requests import RecordWaiters, serve_scripts
from services.kit.service import Service
from services.kit.settings import ServiceSettings
from services.scheduler.briefing import REMEMBERED
from services.scheduler.commands import COMMANDS
from services.scheduler.consumers import Consumers
from services.scheduler.domain import State, evolve
from services.scheduler.forgotten_orders import ForgottenOrders
from services.scheduler.heartbeats import RECONNECT_WAIT_S, monitor_heartbeats
from services.scheduler.measures import readings
from services.scheduler.order_stream import OrderStream
from services.scheduler.orders import OrdersWriter
from services.scheduler.pools import read_pools
from services.scheduler.queries import ANSWERS
from services.scheduler.react import TIMERS, react
from services.scheduler.rights import directory
from services.scheduler.script_answers import holder_handler, leave_handler

RETRY_S = 1.0
"""Pause in seconds before the configuration of pools is sent again."""

FOLD = add_people_fold(evolve)
RULES = Rules(
    owner="scheduler",
    fold_version=9,
    state=State,
    evolve=FOLD,
    reads=FOLD.kinds.union(REMEMBERED),
    react=react,
    commands=add_access_checks(COMMANDS, directory),
    answers=ANSWERS,
    timers=TIMERS,
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


async def _run_background_tasks(parts: Parts) -> None:
    settings = settings_of(parts, Settings)
    orders = OrdersWriter(parts, Consumers(parts.connection).ensure, _token_issuer(settings))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(orders.run())
        tasks.create_task(ForgottenOrders(parts, OrderStream(parts.connection), orders).run())
        tasks.create_task(_answer_scripts(parts))
        tasks.create_task(
            monitor_heartbeats(
                parts, settings.reconnect_wait_s, orders.has_current_orders, orders.request_registration
            )
        )
        if settings.pools is not None:
            # The command waits until this replica leads. Settings that are already in effect produce no
            # event.
            tasks.create_task(_configure_pools(parts, settings.pools))


def _token_issuer(settings: Settings) -> Callable[[str], str]:
    """Return the function that makes a run's token. Raises `BadSettings`."""
    key = task_tokens.key_from(settings.task_key)
    return (lambda _: "") if key is None else partial(task_tokens.issue, key)


async def _answer_scripts(parts: Parts) -> None:
    news = RecordWaiters(parts.saver)
    await parts.runner.ready.wait()
    await serve_scripts(parts.bus_server, {AskLeave: leave_handler(parts.runner, news)})
    await parts.bus_server.serve_workers(name_of(AskHolder), holder_handler(parts.runner))


async def _configure_pools(parts: Parts, path: Path) -> None:
    command = read_pools(path)
    while True:
        try:
            await parts.runner.command(command, Call("configuration", time.time()))
            return
        except Refused as refusal:
            if refusal.problem.code != "unavailable":
                raise
        # The state is loaded anew or stands still, or the log is full: none of that ends the process.
        await asyncio.sleep(RETRY_S)


SERVICE = Service(RULES, settings=Settings, background_tasks=_run_background_tasks, readings=readings)
