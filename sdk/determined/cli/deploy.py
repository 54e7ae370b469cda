"""`det deploy local`: a cluster on this machine (client spec, section 7).

The platform is another distribution; it is started as a command and never imported.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from determined.cli import output
from determined.cli.failure import Failure
from determined.cli.grammar import Arg, Noun, OneOf, Verb, arg, one_of
from determined.transport.rest import Session

_NAME = arg("--cluster-name", default="determined", metavar="NAME", help="default: determined")
_DELETE = arg("--delete-db", action="store_true", help="forget everything the cluster knows")

_IGNORED_VALUES = ("--det-version", "--db-password", "--image-repo-prefix", "--auto-work-dir")
_IGNORED_SWITCHES = ("--no-autorestart", "--no-preflight-checks")

# A parent that is not there raises, which is status 1 as well.
_FIND_PLATFORM = "import importlib.util as u, sys; sys.exit(not u.find_spec('services.local.__main__'))"


def cluster_up(session: Session, args: argparse.Namespace) -> int:
    """Start a cluster, or replace the running one of this name, and return when it answers."""
    _note_ignored(args)
    words = ["up", "--name", args.cluster_name, "--port", str(args.master_port), "--agents", str(args.agents)]
    words += ["--slots", str(args.slots)] if args.slots is not None else []
    words += ["--no-gpu"] if not args.gpu else []
    words += ["--storage", str(args.storage_host_path.resolve())] if args.storage_host_path else []
    words += ["--delete-db"] if args.delete_db else []
    return _platform(words)


def cluster_down(session: Session, args: argparse.Namespace) -> int:
    """Stop a cluster and keep its data; one that does not run is no error."""
    return _platform(["down", "--name", args.cluster_name] + (["--delete-db"] if args.delete_db else []))


def _note_ignored(args: argparse.Namespace) -> None:
    for option in (*_IGNORED_VALUES, *_IGNORED_SWITCHES, "--master-config-path"):
        if getattr(args, option.strip("-").replace("-", "_")):
            output.warn(f"Note: {option} is ignored, the cluster runs without containers.")


def _platform(words: list[str]) -> int:
    # -P: a user's own folder called `services` in the working directory must not be taken for the platform.
    python = [sys.executable, "-P"]
    if subprocess.run([*python, "-c", _FIND_PLATFORM], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Failure("the platform is not installed here; install it with: pip install steadfast")
    return subprocess.run([*python, "-m", "services.local", *words], check=False).returncode


_UP_ARGS: tuple[Arg | OneOf, ...] = (
    arg("--master-port", type=int, default=8080, metavar="PORT", help="default: 8080"),
    _NAME,
    one_of(
        arg(
            "--gpu",
            action="store_true",
            default=sys.platform != "darwin",
            help="use GPUs (default except on macOS)",
        ),
        arg("--no-gpu", action="store_false", dest="gpu", help="one CPU slot per agent"),
    ),
    arg("--slots", type=int, metavar="N", help="artificial slots per agent instead of what it finds"),
    arg("--agents", type=int, default=1, metavar="N", help=argparse.SUPPRESS),
    one_of(
        arg("--storage-host-path", type=Path, metavar="DIR", help="where checkpoints go"),
        arg("--master-config-path", type=Path, metavar="FILE", help=argparse.SUPPRESS),
    ),
    _DELETE,
    *(arg(option, metavar="X", help=argparse.SUPPRESS) for option in _IGNORED_VALUES),
    *(arg(option, action="store_true", help=argparse.SUPPRESS) for option in _IGNORED_SWITCHES),
)

NOUN = Noun(
    "deploy d",
    "start and stop clusters",
    (
        Noun(
            "local",
            "run a cluster on this machine",
            (
                Verb("cluster-up", "start a cluster", cluster_up, _UP_ARGS, login=False, check=False),
                Verb(
                    "cluster-down", "stop a cluster", cluster_down, (_NAME, _DELETE), login=False, check=False
                ),
            ),
        ),
    ),
)
