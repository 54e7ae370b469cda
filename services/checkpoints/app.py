"""Assembles the checkpoints service."""

from __future__ import annotations

from det_contracts.script_queries import AskStorage
from services.checkpoints.commands import COMMANDS
from services.checkpoints.domain import State, evolve
from services.checkpoints.domain.roots import ROOTS
from services.checkpoints.measures import readings
from services.checkpoints.queries import ANSWERS
from services.checkpoints.react import react
from services.checkpoints.rights import directory
from services.checkpoints.script_answers import storage_handler
from services.kit.authz.commands import add_access_checks
from services.kit.authz.people import add_people_fold
from services.kit.parts import Parts
from services.kit.rules import Rules
from services.kit.script_requests import serve_scripts
from services.kit.service import Service

FOLD = add_people_fold(evolve)
RULES = Rules(
    owner="checkpoints",
    fold_version=7,
    state=State,
    roots=ROOTS,
    evolve=FOLD,
    reads=FOLD.kinds,
    react=react,
    commands=add_access_checks(COMMANDS, directory),
    answers=ANSWERS,
)


async def _run_background_tasks(parts: Parts) -> None:
    await parts.runner.ready.wait()
    await serve_scripts(parts.bus_server, {AskStorage: storage_handler(parts.runner)})


SERVICE = Service(RULES, background_tasks=_run_background_tasks, readings=readings)
