"""`python -m services.provisioner.show POOLS POOL`: the script that submits the workers of a pool to Slurm.

To look at what the provisioner would submit, or to submit a worker by hand.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

from services.kit.settings import BadSettings, load
from services.provisioner.engines.slurm import SlurmEngine
from services.provisioner.pools import engines_of
from services.provisioner.settings import Settings


def main() -> None:
    """Print the script; exit status 2 with what makes no sense."""
    parser = argparse.ArgumentParser(prog="python -m services.provisioner.show")
    parser.add_argument("pools", type=Path, help="file with the resource pools")
    parser.add_argument("pool", help="name of a pool whose provider is slurm")
    parser.add_argument("--worker-id", help="default: POOL-by-hand")
    args = parser.parse_args()
    try:
        print(_script(args.pools, args.pool, args.worker_id or f"{args.pool}-by-hand"), end="")
    except BadSettings as error:
        sys.exit(f"{error}")


def _script(pools: Path, pool: str, worker_id: str) -> str:
    settings = replace(load(Settings, os.environ), pools=pools)
    engine = engines_of(settings, pools).get(pool)
    if not isinstance(engine, SlurmEngine):
        raise BadSettings(f"{pools} has no pool '{pool}' whose provider is slurm")
    return engine.script(worker_id)


if __name__ == "__main__":
    main()
