"""The entry point of `det`: finds the verb, runs it, and converts errors to messages and a status.

Status: 0 success, 1 failure, 2 wrong usage, 3 interrupted (client spec, section 3).
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import TextIO

from determined.__version__ import __version__
from determined._home import NoHomeDirectory
from determined.cli import (
    access,
    agent,
    checkpoint,
    command,
    completion,
    deploy,
    dev,
    experiment,
    job,
    master,
    model,
    notebook,
    output,
    preview,
    quota,
    rbac,
    resource_pool,
    resources,
    shell,
    slot,
    task,
    template,
    tensorboard,
    trial,
    unsupported,
    user,
    user_group,
    version,
    webhook,
    why,
    workspace,
)
from determined.cli.failure import Failure
from determined.cli.grammar import Match, Noun, UsageError, Verb, find, help_of, read
from determined.common.api import errors

ROOT = Noun(
    "det",
    "run and watch training experiments on a cluster",
    (
        agent.NOUN,
        unsupported.AUTH,
        checkpoint.NOUN,
        command.NOUN,
        completion.VERB,
        deploy.NOUN,
        dev.NOUN,
        experiment.NOUN,
        job.NOUN,
        master.NOUN,
        model.NOUN,
        notebook.NOUN,
        preview.VERB,
        workspace.PROJECT,
        resource_pool.NOUN,
        resources.NOUN,
        shell.NOUN,
        slot.NOUN,
        task.NOUN,
        template.NOUN,
        tensorboard.NOUN,
        access.NOUN,
        trial.NOUN,
        user.NOUN,
        version.VERB,
        webhook.NOUN,
        why.VERB,
        workspace.WORKSPACE,
        rbac.NOUN,
        user_group.NOUN,
        quota.NOUN,
        *unsupported.NOUNS,
    ),
)

_EXPECTED = (
    Failure,
    errors.BadRequestException,
    errors.BadResponseException,
    errors.CorruptTokenCacheException,
    errors.EmptyResultException,
    NoHomeDirectory,
    # Of a file or disk of the user, such as a full one.
    OSError,
)
_GLOBAL = """
global options, before the command:
  -h, --help                    show this help and exit
  -u USER, --user USER          act as this user
  -m MASTER, --master MASTER    address of the master; else DET_MASTER, else localhost:8080
  -v, --version                 show the version and exit
  --debug                       show tracebacks, as DET_DEBUG=true does
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command line, without the program name. Raises SystemExit with its status unless that is 0."""
    status = _main(argv)
    if status:
        raise SystemExit(status)


def _main(argv: Sequence[str] | None) -> int:
    # Closed by the caller (`det ... >&-`): Python then has no stream, and prints errors to the other one.
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name with characters that the terminal's encoding lacks must not end the command.
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            return _run(sys.argv[1:] if argv is None else argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe (`det ... | head`): not an error, and the flush at exit must not
        # fail.
        _drop_output()
        return 0
    except OSError as error:
        # Of writing the output, for example to a full disk: errors of the command itself do not arrive here.
        output.complain(f"the output cannot be written: {error.strerror}")
        _drop_output()
        return 1
    except KeyboardInterrupt:
        return 3


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(argv: Sequence[str]) -> int:
    options = _globals().parse_args(argv)
    if options.version:
        print(f"det {__version__}")
        return 0
    try:
        chosen = find(ROOT, ["help", *options.words] if options.help else options.words)
    except UsageError as error:
        output.complain(str(error))
        return 2
    if chosen.help or isinstance(chosen.node, Noun):
        print(help_of(chosen) + (_GLOBAL if chosen.node is ROOT else ""), end="")
        return 0
    return _carry_out(chosen, chosen.node, options)


def _globals() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "det", add_help=False, usage="det [-h] [-u USER] [-m MASTER] [-v] [--debug] COMMAND ..."
    )
    made.add_argument("-h", "--help", action="store_true")
    made.add_argument("-u", "--user")
    made.add_argument("-m", "--master")
    made.add_argument("--debug", action="store_true")
    made.add_argument("-v", "--version", action="store_true")
    made.add_argument("words", nargs=argparse.REMAINDER)
    return made


def _carry_out(chosen: Match, verb: Verb, options: argparse.Namespace) -> int:
    # Only for a command that runs: help and completion, which a shell waits for, start without it.
    from determined.cli.connection import open_session

    args = read(chosen.path, verb, chosen.rest)
    try:
        with open_session(verb, options.master, options.user, verb.offline(args)) as session:
            return verb.run(session, args) or 0
    # `_main` gives these a status of their own.
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except _EXPECTED as error:
        if options.debug or os.environ.get("DET_DEBUG", "").lower() in ("1", "true", "yes"):
            traceback.print_exc()
        output.complain(f"Failed to {verb.help}: {error}")
        return error.status if isinstance(error, Failure) else 1
    except Exception:
        traceback.print_exc()
        output.complain(f"Failed to {verb.help}")
        return 1
