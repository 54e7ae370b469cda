"""`det resource-pool`: pools of workers, and how each hands out its slots."""

from __future__ import annotations

import argparse
from typing import Any

from determined.cli import output
from determined.cli.agent import FORMATS
from determined.cli.grammar import Noun, Verb
from determined.transport.rest import Session


def list_pools(session: Session, args: argparse.Namespace) -> None:
    """All pools."""
    found = session.get("/api/v1/resource-pools")["resourcePools"]
    if args.json:
        output.print_json(found)
        return
    headers = ["Name", "Scheduler", "Fitting", "Agents", "Slots (used/all)", "Jobs (running/queued)"]
    output.table([*headers, "Description"], [_row(pool) for pool in found], as_csv=args.csv)


def _row(pool: dict[str, Any]) -> list[Any]:
    stats = pool.get("stats") or {}
    scheduler = str(pool.get("schedulerType", "")).removeprefix("SCHEDULER_TYPE_").lower()
    preempts = ((pool.get("details") or {}).get("priorityScheduler") or {}).get("preemption")
    return [
        pool["name"],
        f"{scheduler}, preempting" if preempts else scheduler,
        str(pool.get("schedulerFittingPolicy", "")).removeprefix("FITTING_POLICY_").lower(),
        pool.get("numAgents"),
        f"{pool.get('slotsUsed')}/{pool.get('slotsAvailable')}",
        f"{stats.get('scheduledCount', 0)}/{stats.get('queuedCount', 0)}",
        pool.get("description"),
    ]


NOUN = Noun(
    "resource-pool rp",
    "see the pools of machines",
    (Verb("list ls", "list resource pools", list_pools, FORMATS),),
    default="list",
)
