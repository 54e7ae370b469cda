"""What a part answers when it cannot do what it was asked."""

from __future__ import annotations

from typing import Literal

import msgspec

Code = Literal[
    "invalid_argument",
    "not_found",
    "already_exists",
    "permission_denied",
    "exhausted",
    "no_space",
    "failed_precondition",
    "unimplemented",
    "unavailable",
    "unauthenticated",
    "internal",
]


class Problem(msgspec.Struct, frozen=True):
    """A refusal that a person can act on: what happened, to which id or field, what to do."""

    code: Code
    message: str


class Refused(Exception):
    """A command or query was refused; nothing was changed by it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def invalid(message: str) -> Refused:
    """The request itself is wrong."""
    return Refused(Problem("invalid_argument", message))


def not_found(kind: str, key: object) -> Refused:
    """There is no such thing."""
    return Refused(Problem("not_found", f"{kind} '{key}' not found"))


def precondition(message: str) -> Refused:
    """The request is sound, the present state does not allow it."""
    return Refused(Problem("failed_precondition", message))


def unavailable(message: str) -> Refused:
    """The part that would decide cannot be reached just now."""
    return Refused(Problem("unavailable", message))
