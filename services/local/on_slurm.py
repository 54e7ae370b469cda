"""A cluster on this machine whose workers are Slurm jobs: `python -m services.local.on_slurm VERB`.

The cluster's provisioner submits them for the pools in its file; `render` prints what it submits. For a
control plane elsewhere, run the provisioner where `sbatch` works.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from services.kit.os_user import os_user
from services.kit.slurm_jobs import worker_of
from services.local import status
from services.local.control import down, up
from services.local.home import Home
from services.local.preconditions import INITIAL_PASSWORD, CannotStart
from services.local.start_options import announce, next_plan
from services.local.supervisor import PROVISIONER, Cluster

ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared
COMMANDS = ("sbatch", "squeue", "scancel")


def main() -> int:
    """Run the requested verb and return the exit status."""
    args = _parser().parse_args()
    home = Home(args.name)
    try:
        if args.verb == "up":
            return _up(args, home)
        if args.verb == "render":
            return _render(args, home)
        return _down(home) if args.verb == "down" else _status(home)
    except (CannotStart, subprocess.CalledProcessError, OSError) as error:
        print(getattr(error, "stderr", "") or error, file=sys.stderr)
        return 1


def _up(args: argparse.Namespace, home: Home) -> int:
    missing = [name for name in COMMANDS if shutil.which(name) is None]
    if missing:
        raise CannotStart(f"{', '.join(missing)} not on PATH: start the cluster where Slurm's commands work")
    if args.host in ANY_ADDRESS:
        raise CannotStart(f"--host {args.host}: name an address by which Slurm's nodes reach this machine")
    pools = Path(args.pools).resolve()
    if not _has_slurm(pools):
        raise CannotStart(f"{pools}: no pool has a provider of the type slurm (docs/guides/slurm.md)")
    last = home.plan()
    plan = next_plan(
        home,
        last,
        port=args.port,
        host=args.host,
        broker_host=args.host,
        agents=0,
        storage=args.storage,
        pools_file=str(pools),
        pools_content={},
    )
    announce(home, last, plan, force=args.force)
    address = up(plan, home, force=args.force, password=os.environ.get(INITIAL_PASSWORD, ""))
    print(f"cluster '{args.name}' is up: {address}; its pools submit jobs as tasks are queued")
    return 0


def _render(args: argparse.Namespace, home: Home) -> int:
    """Print the scripts of pools, for workers of this cluster if it is on this machine."""
    plan = home.plan()
    if plan is None:
        print(f"no cluster '{home.name}' here: the script has the settings of this shell", file=sys.stderr)
    programs = [] if plan is None else Cluster(plan, home).programs()
    environment = next(
        (program.environment for program in programs if program.name == PROVISIONER), os.environ
    )
    words = [args.pools, *([args.pool] if args.pool else [])]
    words += ["--worker-id", args.worker_id] if args.worker_id else []
    command = [sys.executable, "-P", "-m", "services.provisioner.show", *words]
    return subprocess.run(command, env=environment, check=False).returncode


def _has_slurm(pools: Path) -> bool:
    try:
        config = yaml.safe_load(pools.read_text()) or {}
        providers = [pool.get("provider") or {} for pool in config.get("resource_pools") or ()]
        return any(provider.get("type") == "slurm" for provider in providers)
    except (yaml.YAMLError, AttributeError, TypeError) as error:
        raise CannotStart(f"cannot read the resource pools in {pools}: {error}") from None


def _down(home: Home) -> int:
    """Stop the cluster first; otherwise its provisioner would submit new jobs."""
    jobs = _jobs(home)
    stopped = down(home)
    jobs |= _jobs(home)
    if jobs:
        subprocess.run(["scancel", "--quiet", *jobs], check=False)  # noqa: S607 - its own installation
    print(f"cluster '{home.name}' {'stopped' if stopped else 'was not running'}, {len(jobs)} jobs cancelled")
    return 0


def _status(home: Home) -> int:
    plan = home.plan()
    if plan is None:
        raise CannotStart(f"there is no cluster '{home.name}'; start one with: det deploy slurm up POOLS")
    exit_code = status.show(home, plan)
    for number, description in _jobs(home).items():
        print(f"job {number}: {description}")
    return exit_code


def _jobs(home: Home) -> dict[str, str]:
    """Return the unfinished jobs of this cluster's workers, by job id, each with a description."""
    cluster = home.secret("cluster-id").read_text()
    command = ["squeue", "--noheader", f"--user={os_user()}", "--format=%i|%T|%R|%j"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = (line.split("|", 3) for line in output.splitlines())
    return {
        number: f"worker {worker}, {state.lower()} {where}"
        for number, state, where, name in lines
        if (worker := worker_of(cluster, name))
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m services.local.on_slurm", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("up", "down", "status", "render"):
        sub = verbs.add_parser(verb)
        sub.add_argument("--name", default="determined", help="name of the cluster")
        if verb == "render":
            sub.add_argument("pools", help="file with the resource pools")
            sub.add_argument("pool", nargs="?", help="a pool whose provider is slurm; default: all of them")
            sub.add_argument("--worker-id", help="default: POOL-by-hand")
        if verb == "up":
            sub.add_argument("pools", help="file with the resource pools")
            sub.add_argument("--port", type=int, help="default: as at the last start, at first 8080")
            sub.add_argument("--host", help="address of this machine that nodes reach")
            sub.add_argument("--storage", help="directory for checkpoints, also visible to nodes")
            sub.add_argument("--force", action="store_true", help="replace a running cluster")
    return parser


if __name__ == "__main__":
    sys.exit(main())
