"""`det agent`: the machines that run trials (client spec, section 6)."""

from __future__ import annotations

import argparse
from typing import Any

from determined.cli import output, wording
from determined.cli.grammar import Noun, Verb, arg
from determined.transport.rest import Session

FORMATS = (
    arg("--json", action="store_true", help="write JSON"),
    arg("--csv", action="store_true", help="write CSV"),
)


def list_agents(session: Session, args: argparse.Namespace) -> None:
    """The machines of the cluster."""
    found = [_record(one) for one in session.get("/api/v1/agents")["agents"]]
    if args.json:
        output.print_json(found)
        return
    headers = ["Agent ID", "Version", "Registered Time", "Slots", "Containers", "Resource Pool", "Enabled"]
    rows = [[_shown(value) for value in record.values()] for record in found]
    output.table([*headers, "Draining", "Addresses"], rows, as_csv=args.csv)


def _record(agent: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": agent["id"],
        "version": agent.get("version"),
        "registered_time": wording.when(agent.get("registeredTime")),
        "num_slots": len(agent.get("slots") or {}),
        "num_containers": len(agent.get("containers") or {}),
        "resource_pools": agent.get("resourcePools") or [],
        "enabled": agent.get("enabled"),
        "draining": agent.get("draining"),
        "addresses": agent.get("addresses") or [],
    }


def _shown(value: Any) -> Any:
    return wording.listed(value) if isinstance(value, list) else value


NOUN = Noun(
    "agent a",
    "see the machines that run trials",
    (Verb("list ls", "list agents", list_agents, FORMATS),),
    default="list",
)
