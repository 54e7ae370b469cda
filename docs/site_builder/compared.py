"""Commands, routes and fields of Determined 0.25 beside ours, row by row, from what both say themselves.

What 0.25 has lies in tests/vectors: its commands as its own parsers have them, and the requests that its
client can send. The remarks say why a row is not the same; a test fails for a row without a remark, and for
a remark that is no longer true.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import FastAPI

from det_contracts.expconf.experiment import EXPERIMENT
from det_contracts.expconf.meanings import NOT_USED
from determined.cli.cli import ROOT
from determined.cli.grammar import Arg, Noun, OneOf, Verb
from docs.site_builder import compared_remarks as remarks
from docs.site_builder import configuration
from services.gateway.http.server import surface
from services.rest_routes.pages.openapi import document

VECTORS = Path(__file__).parents[2] / "tests" / "vectors"
SAME, DIFFERS, ABSENT = "same", "differs", "not there"
API = "/api/v1"


class Row(NamedTuple):
    """One thing of 0.25."""

    name: str
    state: str
    difference: str = ""
    """What the comparison found, in words."""


def command_rows() -> list[Row]:
    """Every command of 0.25; *same* means: the same names, arguments and options, and perhaps more."""
    commands = json.loads((VECTORS / "commands-0.25.json").read_text())
    return [_command(name, command) for name, command in commands.items() if command["verb"]]


def _command(name: str, command: dict[str, Any]) -> Row:
    ours = _find(name.split())
    if not isinstance(ours, Verb) or ours.anything:
        return Row(name, ABSENT)
    lacking = sorted(set(command["names"]) - set(ours.names.split()))
    flags = {flag for argument in _arguments(ours) for flag in argument.names if flag.startswith("-")}
    lacking += [option for option in command.get("options", []) if not set(option.split()) <= flags]
    positional = [argument for argument in _arguments(ours) if not argument.names[0].startswith("-")]
    if len(positional) < len(command.get("positionals", [])):
        lacking.append("positional arguments")
    return Row(name, DIFFERS, f"without {', '.join(lacking)}") if lacking else Row(name, SAME)


def _find(words: Iterable[str]) -> Noun | Verb | None:
    node: Noun | Verb = ROOT
    for word in words:
        if isinstance(node, Verb):
            return node
        matches = [child for child in node.children if word in child.names.split()]
        if not matches:
            return None
        node = matches[0]
    return node


def _arguments(verb: Verb) -> Iterator[Arg]:
    for item in verb.args:
        yield from item.args if isinstance(item, OneOf) else (item,)


def route_rows() -> list[Row]:
    """Every request that the client of 0.25 can send."""
    app = FastAPI()
    app.include_router(surface())
    paths = document(app)["paths"]
    ours = {(method.upper(), _blank(path)) for path, operations in paths.items() for method in operations}
    rows = []
    for method, path in json.loads((VECTORS / "rest-0.25.json").read_text()):
        key = method, _blank(path)
        rows.append(Row(f"{method} {path.removeprefix(API)}", SAME if key in ours else ABSENT))
    return rows


def _blank(path: str) -> str:
    """Whatever its fields are called."""
    return re.sub(r"\{[^}]*\}", "{}", path)


def field_rows() -> list[Row]:
    """Every field of the configuration that 0.25 has."""
    rows: dict[str, Row] = {}
    for field in configuration.rows(EXPERIMENT):
        if field.path in remarks.OUR_FIELDS or field.branch in remarks.OUR_SEARCHERS:
            continue
        meaning = configuration.meaning(field.path, field.branch)
        unused = meaning == NOT_USED or "not used here" in meaning
        rows[field.path] = Row(
            field.path, DIFFERS if unused else SAME, "taken, and has no effect" if unused else ""
        )
    return list(rows.values())


NONE: dict[str, str] = {}
"""Every route is there, and what has no effect is told by the field's own description."""
KINDS = {
    "commands": (command_rows, remarks.COMMANDS),
    "routes": (route_rows, NONE),
    "fields": (field_rows, NONE),
}


def remark(row: Row, remarks_by_start: dict[str, str]) -> str:
    """Why a row is as it is: the remark of its name or path, or of the longest beginning that has one."""
    fits = [start for start in remarks_by_start if _begins(row.name, start)]
    return remarks_by_start[max(fits, key=len)] if fits else ""


def _begins(name: str, start: str) -> bool:
    return f"{name} ".startswith(f"{start} ") or name.rpartition(" ")[2].startswith(start)


def page() -> str:
    """All rows as Markdown."""
    parts = [INTRODUCTION]
    for title, kind in (("Commands", "commands"), ("REST", "routes"), ("Experiment configuration", "fields")):
        rows = KINDS[kind][0]()
        counts = {state: sum(row.state == state for row in rows) for state in (SAME, DIFFERS, ABSENT)}
        parts.append(
            f"## {title}\n\n{len(rows)} in all: " + ", ".join(f"{n} {s}" for s, n in counts.items()) + ".\n"
        )
        parts.append(_table(rows, KINDS[kind][1]))
    return "\n".join(parts)


def _table(rows: list[Row], remarks_by_start: dict[str, str]) -> str:
    cells = [
        f"| `{row.name}` | {row.state} | "
        f"{_cell('; '.join(filter(None, (row.difference, remark(row, remarks_by_start)))))} |"
        for row in rows
    ]
    return "| 0.25 | here | remarks |\n|---|---|---|\n" + "\n".join(cells) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


INTRODUCTION = """# Commands, routes and settings of Determined 0.25

Everything that the `det` of 0.25 takes, every request that its client can send and every field of its
configuration, beside what is here. *Same*: the same words with the same meaning; there may be more. What
differs or is not there has a remark. The list of 0.25 was taken from its published command and client; a test
compares it with ours row by row. Python names are on [a page of their own](names-of-0.25.md), differences in
what happens on [the page on compatibility](../compatibility.md).
"""
