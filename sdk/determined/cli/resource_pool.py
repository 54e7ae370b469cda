"""`det resource-pool`: pools of workers and their scheduling."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import quote

from determined.cli import output
from determined.cli.agent import FORMATS
from determined.cli.grammar import Noun, Run, Verb, arg
from determined.transport.pages import read_all
from determined.transport.rest import Session


def list_pools(session: Session, args: argparse.Namespace) -> None:
    """List all pools."""
    pools = session.get("/api/v1/resource-pools")["resourcePools"]
    if args.json:
        output.print_json(pools)
        return
    headers = ["Name", "Scheduler", "Fitting", "Agents", "Slots (used/all)", "Jobs (running/queued)"]
    output.table([*headers, "Description"], [_row(pool) for pool in pools], as_csv=args.csv)


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


def _change(method: str, done: str) -> Run:
    """Return a verb that sends workspaces and prints the result."""

    def run(session: Session, args: argparse.Namespace) -> None:
        body = {"resourcePoolName": args.pool_name, "workspaceNames": args.workspace_names}
        getattr(session, method)(_path(args), body)
        print(done.format(pool=args.pool_name, names=", ".join(args.workspace_names)))

    return run


def _path(args: argparse.Namespace) -> str:
    return f"/api/v1/resource-pools/{quote(args.pool_name, safe='')}/workspace-bindings"


def list_workspaces(session: Session, args: argparse.Namespace) -> None:
    """List the workspaces a pool is bound to."""
    ids = read_all(session, _path(args), "workspaceIds")
    workspace_names = {
        workspace["id"]: workspace["name"]
        for workspace in read_all(session, "/api/v1/workspaces", "workspaces")
    }
    if not ids:
        print(f"Resource pool {args.pool_name} is not bound to any workspace visible to you.")
        return
    output.table(
        ["Resource Pool", "Workspace"], [[args.pool_name, workspace_names.get(id, id)] for id in ids]
    )


_POOL = arg("pool_name", help="name of the resource pool")
_NAMES = arg("workspace_names", nargs="+", metavar="workspace_name", help="names of workspaces")
BINDINGS = Noun(
    "bindings",
    "show and change which workspaces may use a pool",
    (
        Verb(
            "add",
            "bind a pool to workspaces",
            _change("post", "Resource pool {pool} is now also bound to {names}."),
            (_POOL, _NAMES),
        ),
        Verb(
            "remove",
            "unbind a pool from workspaces",
            _change("delete", "Resource pool {pool} is no longer bound to {names}."),
            (_POOL, _NAMES),
        ),
        Verb(
            "replace",
            "bind a pool to exactly these workspaces",
            _change("put", "Resource pool {pool} is now bound to {names} only."),
            (_POOL, _NAMES),
        ),
        Verb("list-workspaces", "list the workspaces of a pool", list_workspaces, (_POOL,)),
    ),
)
NOUN = Noun(
    "resource-pool rp",
    "show and bind resource pools",
    (Verb("list ls", "list resource pools", list_pools, FORMATS), BINDINGS),
    default="list",
)
