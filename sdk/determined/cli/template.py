"""`det template`: named partial configurations (client spec, section 6)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any
from urllib.parse import quote

from determined import yamlfile
from determined.cli import output
from determined.cli.config_file import read_config
from determined.cli.grammar import Noun, Verb, arg
from determined.transport.rest import Session

_NAME = arg("name", metavar="NAME", help="name of the template")
_FILE = arg("config_file", type=Path, metavar="FILE", help="partial configuration (YAML)")


def _path(name: str) -> str:
    return f"/api/v1/templates/{quote(name, safe='')}"


def list_templates(session: Session, args: argparse.Namespace) -> None:
    """List the names of templates; with `-d`, also their contents."""
    templates = session.get("/api/v1/templates")["templates"]
    spaces = {entry["id"]: entry["name"] for entry in session.get("/api/v1/workspaces")["workspaces"]}
    if args.details:
        rows = [[*_named(entry, spaces), yamlfile.dump(entry.get("config") or {})] for entry in templates]
        output.table(["Name", "Workspace", "Config"], rows)
    else:
        output.table(["Name", "Workspace"], [_named(entry, spaces) for entry in templates])


def _named(template: dict[str, Any], spaces: dict[int, str]) -> list[Any]:
    return [template["name"], spaces.get(template.get("workspaceId", 0))]


def describe(session: Session, args: argparse.Namespace) -> None:
    """Show the content of a template."""
    output.print_yaml(session.get(_path(args.name))["template"]["config"])


def create(session: Session, args: argparse.Namespace) -> None:
    """Make one; there must be none of the name."""
    body = {"name": args.name, "config": read_config(args.config_file, "template")[1]}
    if args.workspace_name:
        from determined.experimental import _model

        body["workspaceId"] = _model.workspace_id(session, args.workspace_name)
    session.post("/api/v1/templates", body)
    print(f"Created template {args.name}")


def set_config(session: Session, args: argparse.Namespace) -> None:
    """Replace what is in one that exists."""
    session.patch(_path(args.name), read_config(args.config_file, "template")[1])
    print(f"Updated template {args.name}")


def put(session: Session, args: argparse.Namespace) -> None:
    """Make one, or replace it."""
    session.put(_path(args.name), {"name": args.name, "config": read_config(args.config_file, "template")[1]})
    print(f"Set template {args.name}")


def remove(session: Session, args: argparse.Namespace) -> None:
    """Remove a template. Experiments keep what they got from it."""
    session.delete(_path(args.name))
    print(f"Removed template {args.name}")


NOUN = Noun(
    "template tpl",
    "manage templates of configurations",
    (
        Verb(
            "list ls",
            "list templates",
            list_templates,
            (arg("-d", "--details", action="store_true", help="include their contents"),),
        ),
        Verb("describe", "describe a template", describe, (_NAME,)),
        Verb(
            "create",
            "create a template",
            create,
            (_NAME, _FILE, arg("-w", "--workspace-name", metavar="NAME", help="workspace of the template")),
        ),
        Verb("set", "create or replace a template", put, (_NAME, _FILE)),
        Noun(
            "set-value",
            "change a template",
            (Verb("config", "replace the configuration of a template", set_config, (_NAME, _FILE)),),
        ),
        Verb("remove rm", "remove a template", remove, (_NAME,)),
    ),
    default="list",
)
