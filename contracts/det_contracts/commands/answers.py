"""Replies to commands and queries."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.problems import Problem


class Answer(msgspec.Struct, frozen=True):
    """Reply to a command or a query: `value` and the position at which it is valid, or a problem."""

    position: int = 0
    value: Any = None
    problem: Problem | None = None


def given_fields(command: msgspec.Struct, *names: str) -> dict[str, Any]:
    """Return those of the named fields that the command's sender has set."""
    fields = {name: getattr(command, name) for name in names}
    return {name: value for name, value in fields.items() if value is not msgspec.UNSET}
