"""`det slot`: the devices that trials are placed on (client spec, section 6)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from determined.cli import formatting, output
from determined.cli.agent import DRAIN, FORMATS
from determined.cli.grammar import Noun, Verb, arg
from determined.transport.rest import Session

Object = dict[str, Any]

FREE = {"allocation_id": "FREE", "name": "FREE"}
OTHER = {"allocation_id": "OTHER", "name": "OTHER"}


def list_slots(session: Session, args: argparse.Namespace) -> None:
    """List the devices and what runs on them."""
    users = _containers(session.get("/tasks"))
    slots = [record for agent in session.get("/api/v1/agents")["agents"] for record in _records(agent, users)]
    if args.json:
        output.print_json(slots)
        return
    headers = ["Agent ID", "Resource Pool", "Slot ID", "Enabled", "Draining", "Allocation ID", "Task Name"]
    output.table([*headers, "Type", "Device"], [list(record.values()) for record in slots], as_csv=args.csv)


def _containers(tasks: dict[str, Object]) -> dict[str, Object]:
    """Return a mapping of container id to its allocation."""
    return {
        resource["container_id"]: task
        for task in tasks.values()
        for resource in task.get("resources") or []
        if resource.get("container_id")
    }


def _records(agent: Object, users: dict[str, Object]) -> Iterator[Object]:
    slots = (agent.get("slots") or {}).values()
    for slot in sorted(slots, key=lambda slot: (len(slot["id"]), slot["id"])):
        container, device = slot.get("container"), slot.get("device") or {}
        task = users.get(container["id"], OTHER) if container else FREE
        yield {
            "agent_id": agent["id"],
            "resource_pools": formatting.listed(agent.get("resourcePools")),
            "slot_id": slot["id"],
            "enabled": slot.get("enabled"),
            "draining": slot.get("draining"),
            "allocation_id": task["allocation_id"],
            "task_name": task["name"],
            "type": str(device.get("type", "")).removeprefix("TYPE_").lower(),
            "device": device.get("brand"),
        }


def enable(session: Session, args: argparse.Namespace) -> None:
    """Allow new work on a device."""
    session.post(f"/api/v1/agents/{args.agent_id}/slots/{args.slot_id}/enable")
    print(f"Enabled slot {args.slot_id} of agent {args.agent_id}")


def disable(session: Session, args: argparse.Namespace) -> None:
    """Stop new work. Running tasks are killed, or finish with `--drain`."""
    session.post(f"/api/v1/agents/{args.agent_id}/slots/{args.slot_id}/disable", {"drain": args.drain})
    done = "Draining" if args.drain else "Disabled"
    print(f"{done} slot {args.slot_id} of agent {args.agent_id}")


_SLOT = (arg("agent_id", help="the agent"), arg("slot_id", type=int, help="number of the slot"))

NOUN = Noun(
    "slot s",
    "list, enable and disable GPUs and CPU slots",
    (
        Verb("list ls", "list slots", list_slots, FORMATS),
        Verb("enable", "enable a slot", enable, _SLOT),
        Verb("disable", "disable a slot", disable, (*_SLOT, DRAIN)),
    ),
    default="list",
)
