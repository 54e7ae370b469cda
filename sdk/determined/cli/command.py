"""`det command`: runs one command line as a task of the cluster (client spec, section 6)."""

from __future__ import annotations

import argparse

from determined.cli import task_verbs
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg
from determined.transport.rest import Session

KIND = task_verbs.Kind("command", "command")


def run(session: Session, args: argparse.Namespace) -> None:
    """Start the command, and show its output until it ends."""
    words = args.entrypoint[1:] if args.entrypoint[:1] == ["--"] else args.entrypoint
    if not words:
        raise Failure("the command line to run is missing, as in: det command run nvidia-smi -L")
    made = task_verbs.start(session, KIND, args, {"entrypoint": words})
    if args.detach:
        print(made["id"])
        return
    print(f"Launched command (id: {made['id']}).", flush=True)
    task_verbs.follow(session, made["id"])


NOUN = Noun(
    "command cmd",
    "run commands on the cluster",
    (
        Verb(
            "run",
            "run a command",
            run,
            (
                *task_verbs.CONFIG_ARGS,
                task_verbs.VOLUME,
                arg("entrypoint", nargs=argparse.REMAINDER, help="the command line, after the options"),
            ),
        ),
        *task_verbs.verbs(KIND),
    ),
    default="list",
)
