"""`det why`: shows what led to the current state of an object."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from datetime import datetime
from typing import Any

from determined.cli import output
from determined.cli.grammar import Verb, arg
from determined.cli.log_cause import read_log_cause, read_log_cause_of_experiment
from determined.transport import instant
from determined.transport.rest import Session

KINDS = ("experiment", "trial", "allocation", "job", "checkpoint", "worker", "pool")
_SHORT = {
    "e": "experiment",
    "exp": "experiment",
    "t": "trial",
    "c": "checkpoint",
    "j": "job",
    "agent": "worker",
}
_STATES = {"SCHEDULED": "Running", "PENDING": "Queued"}
_LOG_CAUSES = {"trial": read_log_cause, "experiment": read_log_cause_of_experiment}
_PAGE = 500
_WIDEST = 120


def why(session: Session, args: argparse.Namespace) -> None:
    """Show the chain of causes, newest first; with `--all`, the complete history in order."""
    kind = _SHORT.get(args.kind, args.kind)
    story = _story(session, kind, args.id) if args.all else session.get(f"/api/v1/why/{kind}/{args.id}")
    if args.json:
        output.print_json(story)
        return
    state, waits = story["state"], story["waitsFor"]
    output.good(f"{name(story['subject'])}: {_state(state)}" + (f". {waits}" if waits else ""))
    show(story["steps"], in_order=args.all)
    if story["more"]:
        print("... and earlier causes; 'det why --all' shows everything")
    read_cause = _LOG_CAUSES.get(kind)
    if read_cause and state == "ERROR" and (cause := read_cause(session, int(args.id))):
        print(cause)


def _state(state: str) -> str:
    """Format a state as in the web UI: an object that holds slots is running, whatever it does with them."""
    plain = state.removesuffix("_BACKFILLED")
    return _STATES.get(plain, plain.replace("_", " ").capitalize())


def _actor(actor: str) -> str:
    """Format an actor as in the web UI: a user's name, `agent vm`, `trial 13`, or a service."""
    kind, _, who = actor.partition(":")
    if not who:
        return actor
    return who if kind == "user" else f"{'agent' if kind == 'worker' else kind} {who}"


def name(subject: dict[str, str]) -> str:
    """Format a subject: `Trial 12`."""
    return f"{subject['kind'].capitalize()} {subject['id']}"


def _story(session: Session, kind: str, id: str) -> dict[str, Any]:
    """Load all pages, starting with the newest."""
    path = f"/api/v1/why/{kind}/{id}"
    story: dict[str, Any] = session.get(path, {"all": "true", "limit": _PAGE})
    while story["more"]:
        before = story["steps"][0]["position"]
        page = session.get(path, {"all": "true", "limit": _PAGE, "before": before})
        story |= {"steps": page["steps"] + story["steps"], "more": page["more"]}
    return story


def show(steps: list[dict[str, Any]], *, in_order: bool = False) -> None:
    """Print one paragraph per step: when, what, who. Occasions follow the steps they led to."""
    # In a pipe, the width of the terminal says nothing about where the text goes.
    width = min(shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDEST, _WIDEST)
    occasions = {step["position"]: step for step in steps if step["aside"]}
    day, arrow = "", ""
    for step in steps:
        if step["aside"]:
            continue
        if (new := _at(step).strftime("%A, %d %B %Y")) != day:
            day = new
            print(f"  {day}")
        print(output.harmless(paragraph(step, arrow, width)))
        for position in step["because"]:
            if position in occasions:
                print(output.harmless(paragraph(occasions.pop(position), "   when ", width)))
        arrow = "" if in_order else "<- "


def paragraph(step: dict[str, Any], mark: str, width: int) -> str:
    """Format `<time> <mark><sentence>: <reason> [<actor>]`, indented and wrapped to the width."""
    reason = f": {step['reason']}" if step["reason"] else ""
    text = f"{step['what']}{reason} [{_actor(step['actor'])}]"
    head = f"    {_at(step).strftime('%H:%M:%S')}  {mark}"
    return textwrap.fill(
        text,
        max(width, 60),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _at(step: dict[str, Any]) -> datetime:
    """Return the step's time in the local time zone."""
    return instant.parse(step["time"]).astimezone()


VERB = Verb(
    "why",
    "explain why something is in its state",
    why,
    (
        arg("kind", choices=(*KINDS, *_SHORT), metavar="KIND", help=", ".join(KINDS)),
        arg("id", metavar="ID", help="its number or id"),
        arg("--all", action="store_true", help="show everything that happened, in order"),
        arg("--json", action="store_true", help="write the master's response"),
    ),
)
