"""`det agent`: the machines that run trials (client spec, section 6)."""

from __future__ import annotations

import argparse
import sys
from typing import Any
from urllib.parse import quote

from determined.cli import formatting, output
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg, one_of
from determined.cli.task import agents_of, show_tasks
from determined.transport.rest import Session

FORMATS = (
    arg("--json", action="store_true", help="write JSON"),
    arg("--csv", action="store_true", help="write CSV"),
)


def list_agents(session: Session, args: argparse.Namespace) -> None:
    """List the machines of the cluster."""
    agents = [_record(agent) for agent in session.get("/api/v1/agents")["agents"]]
    if args.json:
        output.print_json(agents)
        return
    headers = ["Agent ID", "Version", "Registered Time", "Slots", "Containers", "Resource Pool", "Enabled"]
    headers += ["Draining", "Addresses", "Limits of Runs"]
    output.table(headers, [list(agent.values()) for agent in agents], as_csv=args.csv)


def describe(session: Session, args: argparse.Namespace) -> None:
    """Show one machine, and what each run on it may use."""
    agent = session.get(f"/api/v1/agents/{quote(args.agent_id, safe='')}")["agent"]
    if args.json:
        output.print_json(agent)
        return
    output.table(["Agent", "Value"], list(_record(agent).items()))
    limits = [[limit["kind"], limit["holds"], limit["text"]] for limit in agent.get("runLimits") or ()]
    if limits:
        print()
        output.table(["Limit of Runs", "Holds", "What It Is"], limits)


def _record(agent: dict[str, Any]) -> dict[str, Any]:
    limits = agent.get("runLimits") or ()
    return {
        "id": agent["id"],
        "version": agent.get("version"),
        "registered_time": formatting.when(agent.get("registeredTime")),
        "num_slots": len(agent.get("slots") or {}),
        "num_containers": len(agent.get("containers") or {}),
        "resource_pools": formatting.listed(agent.get("resourcePools")),
        "enabled": agent.get("enabled"),
        "draining": agent.get("draining"),
        "addresses": formatting.listed(agent.get("addresses")),
        "limits": formatting.listed([limit["kind"] for limit in limits if limit["holds"]]),
    }


def enable(session: Session, args: argparse.Namespace) -> None:
    """Allow new work on one machine or all."""
    for id in _chosen(session, args):
        session.post(f"/api/v1/agents/{id}/enable")
        print(f"Enabled agent {id}")


def disable(session: Session, args: argparse.Namespace) -> None:
    """Stop new work. Running tasks are killed, or finish with `--drain`."""
    chosen = _chosen(session, args)
    for id in chosen:
        session.post(f"/api/v1/agents/{id}/disable", {"drain": args.drain})
        outcome = "Draining" if args.drain else "Disabled"
        print(f"{outcome} agent {id}", file=sys.stderr if args.csv or args.json else sys.stdout)
    if args.drain:
        _list_running(session, chosen, args)


def _chosen(session: Session, args: argparse.Namespace) -> list[str]:
    if args.all == (args.agent_id is not None):
        raise Failure("name one agent, or say --all")
    if args.all:
        return [str(agent["id"]) for agent in session.get("/api/v1/agents")["agents"]]
    return [args.agent_id]


def _list_running(session: Session, agent_ids: list[str], args: argparse.Namespace) -> None:
    """List the tasks still running on some agents."""
    tasks = session.get("/api/v1/tasks")["allocationIdToSummary"]
    running = {id: task for id, task in tasks.items() if set(agents_of(task)) & set(agent_ids)}
    if not running and not (args.json or args.csv):
        print("No tasks in progress on draining agents.")
        return
    show_tasks(running, args)


_AGENT = (
    arg("agent_id", nargs="?", help="the agent"),
    arg("--all", action="store_true", help="all agents"),
)
DRAIN = arg("--drain", action="store_true", help="let running tasks finish")

NOUN = Noun(
    "agent a",
    "list, enable and disable the machines that run trials",
    (
        Verb("list ls", "list agents", list_agents, FORMATS),
        Verb("describe", "describe an agent", describe, (arg("agent_id", help="the agent"), FORMATS[0])),
        Verb("enable", "enable agents", enable, _AGENT),
        Verb("disable", "disable agents", disable, (*_AGENT, DRAIN, one_of(*FORMATS))),
    ),
    default="list",
)
