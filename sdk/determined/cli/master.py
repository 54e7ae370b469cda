"""`det master`: the control plane itself (client spec, section 6)."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from determined.cli import output
from determined.cli.grammar import Noun, Verb, arg, one_of
from determined.transport.rest import Session

_FORM = (
    one_of(
        arg("--json", action="store_true", help="write JSON"),
        arg("--yaml", action="store_true", help="write YAML (default)"),
    ),
)


def info(session: Session, args: argparse.Namespace) -> None:
    """What the master says of itself."""
    _show(session.get("/api/v1/master"), args)


def health(session: Session, args: argparse.Namespace) -> int:
    """Whether the cluster works, and what is wrong; status 0 where nothing is."""
    found = session.get("/api/v1/master/health")
    if args.json:
        output.print_json(found)
        return int(found["status"] != "up")
    print(f"{session.master} is {found['status']}")
    output.table(("Part", "State"), sorted(found["parts"].items()))
    for reason in found["reasons"]:
        print(f"\n{reason['program']}: {reason['message']}\nsince {reason['since']}\n{reason['action']}")
    return int(found["status"] != "up")


def config(session: Session, args: argparse.Namespace) -> None:
    """How the master is configured, secrets masked; for administrators."""
    _show(session.get("/api/v1/master/config")["config"], args)


def logs(session: Session, args: argparse.Namespace) -> None:
    """What the master itself logs."""
    params: dict[str, Any] = {"follow": "true"} if args.follow else {}
    if args.tail is not None:
        params |= {"offset": -args.tail, "limit": args.tail}
    for found in session.stream("/api/v1/master/logs", params):
        entry = found["logEntry"]
        level = str(entry.get("level") or "").removeprefix("LOG_LEVEL_")
        print(f"{entry.get('timestamp')} [{level}]: {entry['message']}".rstrip("\n"), flush=args.follow)


def parked(session: Session, args: argparse.Namespace) -> None:
    """What the cluster passed over so that nothing stands still because of it."""
    found = session.get("/api/v1/master/parked")
    if args.json:
        output.print_json(found)
        return
    rows = [(one["position"], one["subject"], one["reason"]) for one in found["unreadable"]]
    print("Messages of the log that nobody can read:")
    output.table(("Position", "Subject", "Reason"), rows)
    if found["more"]:
        print("There are older ones.")
    print("\nRecords that nothing can be decided about until they change:")
    output.table(("Service", "Since", "Message"), [_parked_row(one) for one in found["parked"]])


def _parked_row(one: Mapping[str, str]) -> tuple[str, ...]:
    return one["program"], one["since"], one["message"]


def _show(found: Any, args: argparse.Namespace) -> None:
    if args.json:
        output.print_json(found)
    else:
        output.print_yaml(found)


NOUN = Noun(
    "master",
    "ask the master about itself",
    (
        Verb("info", "show the master's version and identity", info, _FORM, login=False),
        Verb(
            "health",
            "show whether the cluster works",
            health,
            (arg("--json", action="store_true", help="write JSON"),),
            login=False,
        ),
        Verb(
            "parked",
            "list what the cluster could not read or decide about",
            parked,
            (arg("--json", action="store_true", help="write JSON"),),
        ),
        Verb("config", "show the master's configuration", config, _FORM),
        Verb(
            "logs",
            "show the master's own log",
            logs,
            (
                arg("-f", "--follow", action="store_true", help="go on until interrupted"),
                arg("--tail", type=int, metavar="N", help="the last N lines only"),
            ),
        ),
    ),
)
