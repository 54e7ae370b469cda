"""Assembles the checkpoints service."""

from __future__ import annotations

from det_contracts.news import AskStorage
from services.checkpoints.commands import COMMANDS
from services.checkpoints.domain import State, evolve
from services.checkpoints.domain.roots import ROOTS
from services.checkpoints.measures import readings
from services.checkpoints.news import say_storage
from services.checkpoints.queries import ANSWERS
from services.checkpoints.react import react
from services.checkpoints.rights import directory
from services.kit.authz.commands import judged
from services.kit.authz.people import with_people
from services.kit.host import Service
from services.kit.parts import Parts
from services.kit.rules import Rules
from services.kit.script_questions import hear_scripts

RULES = Rules(
    owner="checkpoints",
    fold_version=3,
    state=State,
    roots=ROOTS,
    evolve=with_people(evolve),
    react=react,
    commands=judged(COMMANDS, directory),
    answers=ANSWERS,
)


async def _beside(parts: Parts) -> None:
    await parts.runner.ready.wait()
    await hear_scripts(parts.answerer, {AskStorage: say_storage(parts.runner)})


SERVICE = Service(RULES, extra=_beside, readings=readings)
