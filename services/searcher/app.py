"""The searcher, joined from its parts."""

from __future__ import annotations

from det_contracts.queries import PreviewSearch
from services.kit.host import Service
from services.kit.rules import Rules
from services.searcher.commands import COMMANDS
from services.searcher.domain import State, evolve
from services.searcher.measures import readings
from services.searcher.preview import PREVIEW
from services.searcher.queries import ANSWERS
from services.searcher.react import due, expire, react

RULES = Rules(
    owner="searcher",
    state=State,
    evolve=evolve,
    react=react,
    commands=COMMANDS,
    answers=ANSWERS,
    due=due,
    expire=expire,
)
SERVICE = Service(RULES, readings=readings, heavy={PreviewSearch: PREVIEW})
