"""Replies of a service that cannot do what was requested."""

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
    """A refusal that a user can act on: what happened, to which id or field, and what to do."""

    code: Code
    message: str
    retry_after_s: int = 0
    """Seconds until the same request may succeed; 0 if nobody knows."""


class Refused(Exception):
    """A command or query was refused and changed nothing."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def invalid(message: str) -> Refused:
    """The request itself is invalid."""
    return Refused(Problem("invalid_argument", message))


def not_found(kind: str, key: object, advice: str = "") -> Refused:
    """The object does not exist. `advice` says where to find those that do."""
    return Refused(Problem("not_found", f"{kind} '{key}' not found{advice and f'; {advice}'}"))


def failed_precondition(message: str) -> Refused:
    """The request is valid, but the current state does not allow it."""
    return Refused(Problem("failed_precondition", message))


def unavailable(message: str, retry_after_s: int = 0) -> Refused:
    """The deciding service cannot be reached at the moment."""
    return Refused(Problem("unavailable", message, retry_after_s))
