"""Changes how services print their own logs."""

from __future__ import annotations

from typing import Any

from det_contracts.administration import LOG_LEVELS, SetLogging
from det_contracts.events.gateway import LoggingSet
from det_contracts.problems import invalid
from services.kit.rules import Call, Result
from services.people.domain.state import People


def set_logging(state: People, command: SetLogging, call: Call) -> Result:
    """Set the level, the color, or both. Raises `Refused` for an unknown level or an empty command."""
    reason = f"asked for by {command.user}"
    events: list[Any] = []
    if command.level is not None:
        level = LOG_LEVELS.get(command.level.lower())
        if level is None:
            raise invalid(f"log.level must be one of {', '.join(LOG_LEVELS)}, not '{command.level[:80]}'")
        events.append(LoggingSet(part="level", value=level, reason=reason))
    if command.color is not None:
        events.append(LoggingSet(part="color", value="on" if command.color else "off", reason=reason))
    if not events:
        raise invalid("nothing was asked for: give config.log.level, config.log.color, or both")
    return Result(events)
