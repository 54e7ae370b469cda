"""Nouns of 0.25 that this platform does not support (client spec, section 6)."""

from __future__ import annotations

import argparse

from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Run, Verb
from determined.transport.rest import Session


def refusal(words: str) -> Run:
    """Return a verb that only reports that it is not supported."""

    def run(session: Session, args: argparse.Namespace) -> None:
        raise Failure(f"'det {words}' is not supported")

    return run


def missing(words: str, names: str, help: str) -> Verb:
    """Return an unsupported verb that accepts any arguments."""
    return Verb(names, help, refusal(f"{words} {names.split()[0]}"), login=False, check=False, anything=True)


def _noun(names: str, help: str) -> Verb:
    run = refusal(names.split()[0])
    return Verb(names, f"{help} (not supported)", run, login=False, check=False, anything=True)


AUTH = Noun(
    "auth",
    "log in with single sign-on (not supported)",
    (
        missing("auth", "login", "log in"),
        missing("auth", "logout", "log out"),
        missing("auth", "list-providers", "list providers"),
    ),
)
NOUNS: tuple[Noun | Verb, ...] = (_noun("oauth", "manage OAuth clients"),)
