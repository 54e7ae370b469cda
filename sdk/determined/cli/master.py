"""`det master`: the control plane itself (client spec, section 6)."""

from __future__ import annotations

import argparse

from determined.cli import output
from determined.cli.grammar import Noun, Verb, arg, one_of
from determined.transport.rest import Session


def info(session: Session, args: argparse.Namespace) -> None:
    """What the master says of itself."""
    found = session.get("/api/v1/master")
    if args.json:
        output.print_json(found)
    else:
        output.print_yaml(found)


NOUN = Noun(
    "master",
    "ask the master about itself",
    (
        Verb(
            "info",
            "show the master's version and identity",
            info,
            (
                one_of(
                    arg("--json", action="store_true", help="write JSON"),
                    arg("--yaml", action="store_true", help="write YAML (default)"),
                ),
            ),
            login=False,
        ),
    ),
)
