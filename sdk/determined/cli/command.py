"""`det command`: runs one command line as a task of the cluster (client spec, section 6)."""

from __future__ import annotations

import argparse

from determined.cli import output, task_verbs
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg
from determined.transport.rest import Session

KIND = task_verbs.Kind("command", "command")
_SUCCEEDED = "exit code 0"


def run(session: Session, args: argparse.Namespace) -> int | None:
    """Start the command, and show its output until it ends. Returns 1 if it failed or was killed."""
    words = args.entrypoint[1:] if args.entrypoint[:1] == ["--"] else args.entrypoint
    if not words:
        raise Failure("the command line to run is missing, as in: det command run nvidia-smi -L")
    made = task_verbs.start(session, KIND, args, {"entrypoint": words})
    if args.detach:
        print(made["id"])
        return None
    print(f"Launched command (id: {made['id']}).", flush=True)
    task_verbs.follow(session, made["id"])
    status = session.get(f"{KIND.path}/{made['id']}")[KIND.noun]["exitStatus"]
    if status == _SUCCEEDED:
        return None
    output.complain(f"Command {made['id']} failed: {status}")
    return 1


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
