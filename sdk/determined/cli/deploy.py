"""`det deploy local`: a cluster on this machine (client spec, section 7)."""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

from determined.cli import output
from determined.cli.deploy_elsewhere import (
    CLUSTER_NAME,
    INITIAL_PASSWORD,
    KUBERNETES,
    MASTER_PORT,
    SLURM,
    START_PORT,
)
from determined.cli.failure import Failure
from determined.cli.grammar import Arg, Noun, OneOf, Run, Verb, arg, one_of
from determined.cli.platform_command import run_platform
from determined.transport.rest import Session

_DELETE = arg("--delete-db", action="store_true", help="delete all data of the cluster")

_IGNORED_VALUES = ("--det-version", "--db-password", "--image-repo-prefix", "--auto-work-dir")
_IGNORED_OF_AGENTS = ("--det-version", "--image-repo-prefix")
_IGNORED_SWITCHES = ("--no-autorestart", "--no-preflight-checks")


def cluster_up(session: Session, args: argparse.Namespace) -> int:
    """Start a cluster and wait until it answers. With --force, replace a running one of the same name."""
    _note_ignored(args)
    words = ["up", "--name", args.cluster_name]
    words += ["--agents", str(args.agents)] if args.agents is not None else []
    words += ["--port", str(args.master_port)] if args.master_port is not None else []
    words += ["--slots", str(args.slots)] if args.slots is not None else []
    words += _switch("gpu", args.gpu)
    words += ["--storage", str(args.storage_host_path.resolve())] if args.storage_host_path else []
    words += ["--master-config", str(args.master_config_path.resolve())] if args.master_config_path else []
    words += ["--delete-db"] if args.delete_db else []
    words += ["--force"] if args.force else []
    words += ["--host", args.host] if args.host else []
    words += _switch("tls", args.tls)
    words += ["--metrics", str(args.metrics)] if args.metrics is not None else []
    return run_platform(words, **_first_password(args))


def _switch(name: str, on: bool | None) -> list[str]:
    """Return an option that is on, off or, for None, as at the last start."""
    return [] if on is None else [f"--{name}" if on else f"--no-{name}"]


def _first_password(args: argparse.Namespace) -> dict[str, str]:
    # Not a command-line argument, because all users of this machine can read those.
    password = args.initial_user_password
    return {"STEADFAST_INITIAL_PASSWORD": password} if password else {}


def cluster_down(session: Session, args: argparse.Namespace) -> int:
    """Stop a cluster and keep its data. A cluster that is not running is not an error."""
    return run_platform(["down", "--name", args.cluster_name] + (["--delete-db"] if args.delete_db else []))


def master_up(session: Session, args: argparse.Namespace) -> int:
    """Start a cluster without agents."""
    args.agents, args.cluster_name, args.gpu, args.slots = 0, args.master_name, None, None
    return cluster_up(session, args)


def master_down(session: Session, args: argparse.Namespace) -> int:
    """Stop what `master-up` started, including added agents."""
    args.cluster_name = args.master_name
    return cluster_down(session, args)


def agent_up(session: Session, args: argparse.Namespace) -> int:
    """Add an agent to a cluster on this machine."""
    if args.agent_config_path:
        output.warn("Note: --agent-config-path is ignored, the cluster runs without containers.")
    words = ["agent-up", args.master_host, "--port", str(args.master_port), "--agent-name", args.agent_name]
    words += ["--pool", args.agent_resource_pool]
    words += ["--slots", str(args.slots)] if args.slots is not None else []
    return run_platform(words + (["--no-gpu"] if args.gpu is False else []))


def agent_down(session: Session, args: argparse.Namespace) -> int:
    """Stop an agent that `agent-up` started, or all of them."""
    return run_platform(["agent-down", "--agent-name", args.agent_name] + (["--all"] if args.all else []))


def logs(session: Session, args: argparse.Namespace) -> int:
    """Show the output of a cluster's programs."""
    return run_platform(["logs", "--name", args.cluster_name] + (["--no-follow"] if args.no_follow else []))


def status(session: Session, args: argparse.Namespace) -> int:
    """Show the programs of a cluster and their problems."""
    return run_platform(["status", "--name", args.cluster_name])


def reset_password(session: Session, args: argparse.Namespace) -> int:
    """Give a user a new password, with the keys of the cluster instead of a login."""
    words = ["reset-password", "--name", args.cluster_name, args.username]
    words += ["--admin"] if args.admin else []
    words += ["--password-file", str(args.password_file)] if args.password_file else []
    return run_platform(words)


def backup(session: Session, args: argparse.Namespace) -> int:
    """Copy a running cluster to a directory."""
    return run_platform(["backup", "--name", args.cluster_name, str(args.folder.resolve()), *_key(args)])


def restore(session: Session, args: argparse.Namespace) -> int:
    """Create a cluster from a backup and start it."""
    words = ["restore", "--name", args.cluster_name, str(args.folder.resolve()), *_key(args)]
    words += ["--port", str(args.master_port)] if args.master_port is not None else []
    words += ["--without-damaged"] if args.without_damaged else []
    return run_platform(words)


def _key(args: argparse.Namespace) -> list[str]:
    return ["--key-file", str(args.key_file.resolve())] if args.key_file else []


def elsewhere(session: Session, args: argparse.Namespace) -> int:
    """Fail: deployment to clouds is not supported yet."""
    raise Failure("only 'det deploy local' is supported")


def _note_ignored(args: argparse.Namespace) -> None:
    for option in (*_IGNORED_VALUES, *_IGNORED_SWITCHES):
        if getattr(args, option.strip("-").replace("-", "_")):
            output.warn(f"Note: {option} is ignored, the cluster runs without containers.")


_GPU: tuple[Arg | OneOf, ...] = (
    one_of(
        arg("--gpu", action="store_true", default=None, help="use GPUs; the default at first"),
        arg("--no-gpu", action="store_false", dest="gpu", help="one CPU slot per agent"),
    ),
    arg(
        "--slots",
        type=int,
        metavar="N",
        help="number of CPU slots per agent, instead of the detected devices",
    ),
)
_MASTER_ARGS: tuple[Arg | OneOf, ...] = (
    START_PORT,
    one_of(
        arg("--storage-host-path", type=Path, metavar="DIR", help="where checkpoints go"),
        arg("--master-config-path", type=Path, metavar="FILE", help="configuration of a 0.25 master"),
    ),
    _DELETE,
    one_of(
        arg(
            "--tls",
            action="store_true",
            default=None,
            help="encrypt with TLS, using certificates of the cluster's own authority",
        ),
        arg("--no-tls", action="store_false", dest="tls", help="do not encrypt; the default at first"),
    ),
    arg(
        "--host",
        metavar="ADDRESS",
        help="address to listen on; default: as at the last start, at first 127.0.0.1, this machine alone",
    ),
    INITIAL_PASSWORD,
    arg("--metrics", type=int, metavar="N", help="processes that share the storing of metrics and logs"),
    arg("--force", action="store_true", help="replace a running cluster of this name and kill its tasks"),
    *(arg(option, metavar="X", help=argparse.SUPPRESS) for option in _IGNORED_VALUES),
    *(arg(option, action="store_true", help=argparse.SUPPRESS) for option in _IGNORED_SWITCHES),
)
_AGENTS = arg(
    "--agents", type=int, metavar="N", help="number of agents; default: as at the last start, at first 1"
)
_MASTER_NAME = arg("--master-name", default="determined", metavar="NAME", help="default: determined")
_OF = arg("--cluster-name", metavar="NAME", help=argparse.SUPPRESS)
"""An option of 0.25, where it named a network. Ignored here."""
_AGENT_NAME = arg(
    "--agent-name",
    default=f"det-agent-{platform.node()}",
    metavar="NAME",
    help="default: det-agent-HOSTNAME",
)

_FOLDER = arg("folder", type=Path, help="folder of the backup")
_KEY = arg(
    "--key-file",
    type=Path,
    metavar="FILE",
    help="file with the key that encrypts the cluster's keys; or set STEADFAST_BACKUP_PASSPHRASE",
)


def _verb(names: str, help: str, run: Run, *args: Arg | OneOf) -> Verb:
    return Verb(names, help, run, args, login=False, check=False)


_LOCAL = (
    _verb("cluster-up", "start a cluster", cluster_up, CLUSTER_NAME, _AGENTS, *_GPU, *_MASTER_ARGS),
    _verb("cluster-down", "stop a cluster", cluster_down, CLUSTER_NAME, _DELETE),
    _verb("master-up", "start a cluster without agents", master_up, _MASTER_NAME, _OF, *_MASTER_ARGS),
    _verb("master-down", "stop a cluster", master_down, _MASTER_NAME, _OF, _DELETE),
    _verb(
        "agent-up",
        "add an agent to a cluster",
        agent_up,
        arg("master_host", help="host of the master: this machine"),
        MASTER_PORT,
        _AGENT_NAME,
        arg("--agent-resource-pool", default="default", metavar="POOL", help="default: default"),
        arg("--agent-config-path", type=Path, metavar="FILE", help=argparse.SUPPRESS),
        _OF,
        *(arg(option, metavar="X", help=argparse.SUPPRESS) for option in _IGNORED_OF_AGENTS),
        arg("--no-autorestart", action="store_true", help=argparse.SUPPRESS),
        *_GPU,
    ),
    _verb(
        "agent-down",
        "stop an agent",
        agent_down,
        _AGENT_NAME,
        _OF,
        arg("--all", action="store_true", help="all agents that agent-up started"),
    ),
    _verb(
        "reset-password",
        "give a user a new password, also when no administrator can sign in",
        reset_password,
        arg("username", help="name of the user"),
        arg("--admin", action="store_true", help="make the user an administrator, too"),
        arg(
            "--password-file",
            metavar="FILE",
            help="file with the new password, - for standard input; default: ask for it",
        ),
        CLUSTER_NAME,
    ),
    _verb("backup", "back up a running cluster into a folder", backup, _FOLDER, _KEY, CLUSTER_NAME),
    _verb(
        "restore",
        "restore a cluster from a backup, and start it",
        restore,
        _FOLDER,
        _KEY,
        CLUSTER_NAME,
        arg("--master-port", type=int, metavar="PORT", help="default: as before"),
        arg(
            "--without-damaged",
            action="store_true",
            help="leave out damaged checkpoints, code and metrics databases, and say which",
        ),
    ),
    _verb("status", "show the health of a cluster's programs", status, CLUSTER_NAME),
    _verb(
        "logs",
        "show the logs of a cluster's programs",
        logs,
        CLUSTER_NAME,
        arg("--no-follow", action="store_true", help="print the existing lines and exit"),
    ),
)

NOUN = Noun(
    "deploy d",
    "start and stop clusters",
    (
        Noun("local", "run a cluster on this machine", _LOCAL),
        SLURM,
        KUBERNETES,
        *(
            Verb(name, f"deploy to {name}", elsewhere, login=False, check=False, anything=True)
            for name in ("aws", "gcp", "gke")
        ),
    ),
)
