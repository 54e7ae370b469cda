"""`python -m services.provisioner.show POOLS [POOL]`: prints the Slurm scripts of pools.

Use it to see what the provisioner would submit, or to submit a worker by hand.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from services.kit.settings import BadSettings, load
from services.provisioner.engines.slurm import SlurmEngine
from services.provisioner.pools import load_engines
from services.provisioner.settings import Settings


def main() -> None:
    """Print the scripts. Exits with status 2 if something is invalid."""
    parser = argparse.ArgumentParser(prog="python -m services.provisioner.show")
    parser.add_argument("pools", type=Path, help="file with the resource pools")
    parser.add_argument("pool", nargs="?", help="a pool whose provider is slurm; default: all of them")
    parser.add_argument("--worker-id", help="default: POOL-by-hand")
    args = parser.parse_args()
    try:
        print("\n".join(_scripts(args.pools, args.pool, args.worker_id)), end="")
    except BadSettings as error:
        sys.exit(f"{error}")


def _scripts(pools: Path, pool: str | None, worker_id: str | None) -> Iterator[str]:
    settings = replace(load(Settings, os.environ), pools=pools)
    engines = {
        name: engine
        for name, engine in load_engines(settings, pools).items()
        if isinstance(engine, SlurmEngine)
    }
    wanted = [pool] if pool else [*engines]
    if not wanted or not set(wanted) <= engines.keys():
        which = f" '{pool}'" if pool else ""
        raise BadSettings(f"{pools} has no pool{which} whose provider is slurm")
    yield from (engines[name].script(worker_id or f"{name}-by-hand") for name in wanted)


if __name__ == "__main__":
    main()
