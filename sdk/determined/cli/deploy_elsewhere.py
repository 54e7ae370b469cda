"""`det deploy slurm` and `det deploy kubernetes`: clusters whose workers others start (docs/guides)."""

from __future__ import annotations

import argparse
from pathlib import Path

from determined.cli.grammar import Arg, Noun, OneOf, Run, Verb, arg
from determined.cli.platform_command import run_platform
from determined.transport.rest import Session

_SLURM, _KUBERNETES = "services.local.on_slurm", "services.local.on_kubernetes"


def slurm_render(session: Session, args: argparse.Namespace) -> int:
    """Print the scripts that submit the workers of pools to Slurm."""
    chosen = [args.pool] if args.pool else []
    chosen += ["--worker-id", args.worker_id] if args.worker_id else []
    return run_platform(["render", "--name", args.cluster_name, str(args.pools), *chosen], module=_SLURM)


def slurm_up(session: Session, args: argparse.Namespace) -> int:
    """Start a cluster on this machine whose pools submit jobs."""
    words = ["up", "--name", args.cluster_name]
    words += ["--port", str(args.master_port)] if args.master_port is not None else []
    words += ["--host", args.host] if args.host else []
    words += ["--storage", str(args.storage_host_path.resolve())] if args.storage_host_path else []
    words += ["--force"] if args.force else []
    password = args.initial_user_password
    variables = {"STEADFAST_INITIAL_PASSWORD": password} if password else {}
    return run_platform([*words, str(args.pools)], module=_SLURM, **variables)


def slurm_down(session: Session, args: argparse.Namespace) -> int:
    """Stop the cluster and cancel its jobs. Data is kept."""
    return run_platform(["down", "--name", args.cluster_name], module=_SLURM)


def slurm_status(session: Session, args: argparse.Namespace) -> int:
    """Show its programs and its jobs."""
    return run_platform(["status", "--name", args.cluster_name], module=_SLURM)


def _kubernetes(verb: str) -> Run:
    def run(session: Session, args: argparse.Namespace) -> int:
        words = [verb]
        for name in ("name", "namespace", "workers_namespace", "keys", "brokers", "chart"):
            value = getattr(args, name, None)
            words += [f"--{name.replace('_', '-')}={value}"] if value else []
        words += [f"--values={file}" for file in getattr(args, "values", None) or []]
        words += [
            f"--{name.replace('_', '-')}" for name in ("wait", "delete_data") if getattr(args, name, False)
        ]
        return run_platform(words, module=_KUBERNETES)

    return run


def _verb(names: str, help: str, run: Run, *args: Arg | OneOf) -> Verb:
    return Verb(names, help, run, args, login=False, check=False)


_POOLS = arg("pools", type=Path, help="file with the resource pools")
CLUSTER_NAME = arg("--cluster-name", default="determined", metavar="NAME", help="default: determined")
MASTER_PORT = arg("--master-port", type=int, default=8080, metavar="PORT", help="default: 8080")
START_PORT = arg(
    "--master-port",
    type=int,
    metavar="PORT",
    help="port to listen on; default: as at the last start, at first 8080",
)
INITIAL_PASSWORD = arg(
    "--initial-user-password",
    metavar="PASSWORD",
    help="password for 'admin' and 'determined' if they have none; or set STEADFAST_INITIAL_PASSWORD",
)

SLURM = Noun(
    "slurm",
    "run workers as Slurm jobs",
    (
        _verb(
            "render",
            "print the scripts that submit workers: det deploy slurm render pools.yaml POOL | sbatch",
            slurm_render,
            _POOLS,
            arg("pool", nargs="?", help="a pool whose provider is slurm; default: all of them"),
            CLUSTER_NAME,
            arg("--worker-id", metavar="ID", help="default: POOL-by-hand"),
        ),
        _verb(
            "up",
            "start a cluster on this machine whose pools submit jobs",
            slurm_up,
            _POOLS,
            CLUSTER_NAME,
            START_PORT,
            arg("--host", metavar="ADDRESS", help="address of this machine for the nodes"),
            arg(
                "--storage-host-path",
                type=Path,
                metavar="DIR",
                help="where checkpoints are stored; nodes must be able to access it",
            ),
            INITIAL_PASSWORD,
            arg("--force", action="store_true", help="replace a running cluster of this name"),
        ),
        _verb("down", "stop the cluster and cancel its jobs", slurm_down, CLUSTER_NAME),
        _verb("status", "show its programs and its jobs", slurm_status, CLUSTER_NAME),
    ),
)

_RELEASE = (
    arg("--name", default="steadfast", help="name of the release; default: steadfast"),
    arg("--namespace", default="steadfast", help="default: steadfast"),
    arg(
        "--workers-namespace", metavar="NAMESPACE", help="as workers.namespace of the values, if that is set"
    ),
)
_KEYS = (
    arg("--keys", metavar="DIR", required=True, help="folder for the cluster's keys; created if missing"),
    arg("--brokers", type=int, choices=(1, 3), default=1, help="as broker.count of the values; default: 1"),
)
_CHART = (
    arg("--values", action="append", metavar="FILE", help="chart values; later files take precedence"),
    arg("--chart", metavar="CHART", help="folder, archive or address; default: deploy/helm/steadfast"),
)

KUBERNETES = Noun(
    "kubernetes k8s",
    "run a cluster on Kubernetes with its Helm chart",
    (
        _verb(
            "keys", "print the Secrets that hold the cluster's keys", _kubernetes("keys"), *_RELEASE, *_KEYS
        ),
        _verb("render", "print the chart's manifests", _kubernetes("render"), *_RELEASE, *_CHART),
        _verb(
            "up",
            "create the keys, and install or upgrade the release",
            _kubernetes("up"),
            *_RELEASE,
            *_KEYS,
            *_CHART,
            arg("--wait", action="store_true", help="wait until everything is ready"),
        ),
        _verb(
            "down",
            "remove the release and its workers, but keep volumes and keys",
            _kubernetes("down"),
            *_RELEASE,
            arg("--delete-data", action="store_true", help="also remove volumes and keys"),
        ),
        _verb("status", "show what is running", _kubernetes("status"), *_RELEASE),
    ),
)
