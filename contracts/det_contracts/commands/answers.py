"""What a command is answered with."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.problems import Problem


class Answer(msgspec.Struct, frozen=True):
    """Reply to a command or a query: `value` and the position it holds at, or a problem."""

    position: int = 0
    value: Any = None
    problem: Problem | None = None


def given(command: msgspec.Struct, *names: str) -> dict[str, Any]:
    """Those fields of a command that its sender set."""
    fields = {name: getattr(command, name) for name in names}
    return {name: value for name, value in fields.items() if value is not msgspec.UNSET}
