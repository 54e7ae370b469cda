"""`det shell`: SSH sessions on a worker, through the master (client spec, section 6)."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from determined.cli import task_verbs, tunnel
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg
from determined.transport import certificates, token_store
from determined.transport.rest import Session

Object = dict[str, Any]
KIND = task_verbs.Kind("shell", "shell")


def start(session: Session, args: argparse.Namespace) -> int | None:
    """Start a shell and log in once it is ready."""
    if args.passphrase:
        raise Failure(
            "a passphrase for the key is not supported: the key opens only this shell and only you get it"
        )
    made = task_verbs.start(session, KIND, args, {})
    if args.detach:
        print(made["id"])
        return None
    print(f"Launched shell (id: {made['id']}).", flush=True)
    return _enter(session, made["id"], args)


def enter(session: Session, args: argparse.Namespace) -> int | None:
    """Log in to a running shell. Words after its id are run as a command there."""
    return _enter(session, task_verbs.find(session, KIND, args.task_id), args)


def show_command(session: Session, args: argparse.Namespace) -> None:
    """Print the ssh command line, for editors that connect through it. The keys are kept in a file."""
    shell = _ready(session, task_verbs.find(session, KIND, args.task_id))
    print(shlex.join(ssh_command(session.master, shell, _shell_folder(shell["id"]), _words(args))))


def _enter(session: Session, id: str, args: argparse.Namespace) -> int | None:
    shell = _ready(session, id)
    if args.show_ssh_command:
        print(shlex.join(ssh_command(session.master, shell, _shell_folder(id), _words(args))), flush=True)
    if shutil.which("ssh") is None:
        raise Failure("there is no 'ssh' on this machine: install an OpenSSH client")
    with tempfile.TemporaryDirectory() as folder:
        words = ssh_command(session.master, shell, Path(folder), _words(args))
        done = subprocess.run(words, env=_environment(session), check=False)  # noqa: S603
    print(f"To reconnect, run: det shell open {id}", file=sys.stderr)
    return done.returncode


def _ready(session: Session, id: str) -> Object:
    shell = task_verbs.ready(
        session, KIND, id, lambda shell: bool((shell.get("agentUserGroup") or {}).get("user"))
    )
    if not shell.get("privateKey"):
        raise Failure(f"shell {id} belongs to {shell.get('username')}, and only that user has its key")
    return shell


def ssh_command(master: str, shell: Object, folder: Path, words: list[str]) -> list[str]:
    """Return the command line that logs in to a shell.

    Writes its keys to `folder`, readable only by the user.

    Args:
        master: Address of the master, with scheme.
        shell: The shell in the REST API's form, with `privateKey`, `hostKey` and `agentUserGroup`.
        folder: Directory for the files that ssh reads.
        words: Additional ssh options, and the command to run.
    """
    id, key, hosts = shell["id"], folder / "key", folder / "known_hosts"
    token_store.replace_private(key, shell["privateKey"])
    # Under the shell's id, which ssh takes for a host name. The tunnel gets it as %h.
    token_store.replace_private(hosts, f"{id} {shell['hostKey']}\n")
    through = shlex.join([sys.executable, "-m", "determined.cli.tunnel", master]) + " %h"
    options = {
        "ProxyCommand": through,
        # The master supplies the host key, so ssh need not ask whether to trust the host.
        "UserKnownHostsFile": str(hosts),
        "StrictHostKeyChecking": "yes",
        "IdentitiesOnly": "yes",
        "LogLevel": "ERROR",
    }
    listed = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    user = shell["agentUserGroup"]["user"]
    return ["ssh", *listed, "-i", str(key), f"{user}@{id}", *words]


def _shell_folder(id: str) -> Path:
    folder = token_store.config_dir() / "shells" / id
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _words(args: argparse.Namespace) -> list[str]:
    options: list[str] = args.ssh_opts
    return options[1:] if options[:1] == ["--"] else options


def _environment(session: Session) -> dict[str, str]:
    """Return the environment for the tunnel: the user's token and the trusted certificate."""
    # Not an argument of the tunnel: all users of this machine can read the command lines of others.
    environment = {**os.environ, tunnel.TOKEN: session.token or ""}
    trusted = certificates.verification(session.master)
    if isinstance(trusted, str):
        environment[tunnel.CERTIFICATE] = trusted
    return environment


_SSH = arg("ssh_opts", nargs=argparse.REMAINDER, help="after --: ssh options, and a command to run")
_SHOW = arg("--show-ssh-command", action="store_true", help="also print the ssh command line")
_ONE = arg("task_id", metavar="shell_id", help="id of the shell, or a unique prefix")
NOUN = Noun(
    "shell",
    "open ssh sessions on the cluster",
    (
        Verb(
            "start",
            "start a shell",
            start,
            (
                *task_verbs.CONFIG_ARGS,
                task_verbs.VOLUME,
                arg("-p", "--passphrase", action="store_true", help="not supported"),
                _SHOW,
                _SSH,
            ),
        ),
        Verb("open", "open a shell", enter, (_SHOW, _ONE, _SSH)),
        Verb("show_ssh_command show-ssh-command", "print the ssh command", show_command, (_ONE, _SSH)),
        *task_verbs.verbs(KIND),
    ),
    default="list",
)
