"""Which cluster a start makes: as at its last start, except for what an option says."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from services.local import master_file
from services.local.home import SHARDS, Home, Plan, chosen_options
from services.local.master_file import MasterFile
from services.local.preconditions import CannotStart, differences, is_running

STORE = "STEADFAST_CHECKPOINTS"
"""The setting for the checkpoint storage of a master's configuration file."""


def plan_of(args: argparse.Namespace, home: Home) -> Plan:
    """Return the plan that the options ask for, printing which master settings have no effect.

    Raises `CannotStart`.
    """
    master = master_file.load(Path(args.master_config)) if args.master_config else None
    if master is not None:
        for warning in master.warnings():
            print(warning, file=sys.stderr)
        if master.pools and args.pools:
            raise CannotStart(f"both {args.master_config} and --pools {args.pools} configure resource pools")
    last = home.plan()
    return next_plan(
        home,
        last,
        python=args.python,
        port=args.port or (master.port if master is not None else None),
        host=args.host,
        agents=args.agents,
        storage=args.storage,
        pools=args.pool,
        tls=args.tls,
        settings=_settings(args, master, last.settings if last is not None else {}),
        **_slots(args),
        **_pools(args, master),
    )


def next_plan(home: Home, last: Plan | None, *, python: str | None = None, **options: Any) -> Plan:
    """Return the last plan, changed by those options that are not None.

    Trials always have the interpreter of this start: their packages are those where `cluster-up` was run.
    """
    chosen = {name: value for name, value in options.items() if value is not None}
    return replace(
        last or Plan(name=home.name),
        name=home.name,
        python=python or sys.executable,
        ends_with=0,
        **chosen,
    )


def announce(home: Home, last: Plan | None, plan: Plan, *, force: bool) -> None:
    """Print how a cluster that is about to start is like its last start, if it was there before."""
    if last is not None and (force or not is_running(home)) and (line := compared(last, plan)):
        print(f"cluster '{home.name}' starts {line}", flush=True)


def compared(last: Plan, plan: Plan) -> str:
    """Return one line on how a plan is like the last one and differs from it; empty if both are the usual."""
    changed = [change.strip() for change in differences(replace(last, ends_with=plan.ends_with), plan)]
    before, now = chosen_options(last), chosen_options(plan)
    same = [option for name, option in now.items() if before.get(name) == option]
    parts = [f"as at its last start: {' '.join(same)}"] if same else []
    parts += [f"changed: {', '.join(changed)}"] if changed else []
    return "; ".join(parts)


def _slots(args: argparse.Namespace) -> dict[str, Any]:
    if args.slots is None and args.gpu is None:
        return {}
    return {
        "slots": args.slots if args.slots is not None else 1,
        "gpu": bool(args.gpu) and args.slots is None,
    }


def _pools(args: argparse.Namespace, master: MasterFile | None) -> dict[str, Any]:
    """Return where pools are configured now. A file of either kind replaces that of the other."""
    if args.pools:
        return {"pools_file": args.pools, "pools_content": {}}
    if master is None:
        return {}
    return {"pools_content": master.pools} | ({"pools_file": ""} if master.pools else {})


def _settings(args: argparse.Namespace, master: MasterFile | None, last: dict[str, str]) -> dict[str, str]:
    """Return the settings of all programs. A master's file replaces those of its predecessor."""
    settings = last if master is None else {name: text for name, text in last.items() if name == SHARDS}
    if args.storage:
        settings = {name: text for name, text in settings.items() if name != STORE}
    shards = {} if args.metrics is None else {SHARDS: str(args.metrics)}
    return (
        settings
        | (master.settings if master is not None else {})
        | shards
        | dict(pair.split("=", 1) for pair in args.set)
    )
