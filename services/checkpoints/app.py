"""The checkpoints service, joined from its parts."""

from __future__ import annotations

from services.checkpoints.commands import COMMANDS
from services.checkpoints.domain import State, evolve
from services.checkpoints.measures import readings
from services.checkpoints.queries import ANSWERS
from services.checkpoints.react import react
from services.kit.host import Service
from services.kit.rules import Rules

RULES = Rules(
    owner="checkpoints", state=State, evolve=evolve, react=react, commands=COMMANDS, answers=ANSWERS
)
SERVICE = Service(RULES, readings=readings)
