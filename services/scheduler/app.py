"""The scheduler, joined from its parts."""

from __future__ import annotations

from dataclasses import dataclass

from services.kit.host import Parts, Service
from services.kit.rules import Rules
from services.kit.settings import ServiceSettings
from services.scheduler.commands import COMMANDS
from services.scheduler.domain import State, evolve
from services.scheduler.heartbeats import RECONNECT_WAIT_S, watch
from services.scheduler.queries import ANSWERS
from services.scheduler.react import due, expire, react

RULES = Rules(
    owner="scheduler",
    state=State,
    evolve=evolve,
    react=react,
    commands=COMMANDS,
    answers=ANSWERS,
    due=due,
    expire=expire,
)


@dataclass(frozen=True)
class Settings(ServiceSettings):
    """What the scheduler needs beside the common settings."""

    reconnect_wait_s: float = RECONNECT_WAIT_S


async def _watch(parts: Parts) -> None:
    assert isinstance(parts.settings, Settings)
    await watch(parts, parts.settings.reconnect_wait_s)


SERVICE = Service(RULES, settings=Settings, extra=_watch)
