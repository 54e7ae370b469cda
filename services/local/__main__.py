"""`python -m services.local up|down|run|status|logs|agent-up|agent-down`: a cluster without containers."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path

import services.kit.import_trimming  # noqa: F401  # isort: split
from services.local import logs, reset_password, status
from services.local.agents import agent_down, agent_run, agent_up
from services.local.control import down, up
from services.local.home import DEFAULT_NAME, RUN_AS, Home, Plan, cluster_names, option_of
from services.local.keys import KeysDamaged
from services.local.preconditions import INITIAL_PASSWORD, CannotStart
from services.local.start_options import announce, plan_of

PASSPHRASE = "STEADFAST_BACKUP_PASSPHRASE"  # noqa: S105 - the name of a variable
MIN_KEY_LENGTH = 8
AS_ROOT = (
    "tasks run as root and can read the cluster's keys: before you run scripts of others, set "
    f"{RUN_AS} (docs/guides/hardening.md)"
)
SIGNED_IN_BY_SCRIPTS = (
    "scripts reach this address, too: give 'admin' and 'determined' passwords, or any script can sign in as "
    "them (docs/guides/signing-in.md)"
)
DEFAULT_MASTER = Plan(name=DEFAULT_NAME).address


def main() -> int:
    args = _parser().parse_args()
    if args.verb in ("agent-up", "agent-down"):
        return _agent(args)
    home = Home(args.name)
    if args.verb == "up":
        return _up(args, home)
    if args.verb == "down":
        stopped = down(home, forget=args.delete_db)
        print(f"cluster '{args.name}' {'stopped' if stopped else 'was not running'}")
        return 0
    if args.verb in ("backup", "restore"):
        return _back_up_or_restore(args, home)
    plan = home.plan()
    if plan is None:
        sys.exit(f"there is no cluster '{args.name}'; {_others()}")
    if args.verb == "run":
        from services.local.supervisor import run

        try:
            run(plan, home)
        except KeysDamaged as error:
            sys.exit(str(error))
        return 0
    if args.verb == "agent-run":
        agent_run(home, plan, args.agent_name, pool=args.pool, slots=args.slots, gpu=args.gpu)
        return 0
    if args.verb == "reset-password":
        return reset_password.reset_here(home, plan, args)
    if args.verb == "logs":
        with contextlib.suppress(KeyboardInterrupt):
            logs.show(home.path / "logs", follow=not args.no_follow)
        return 0
    return status.show(home, plan)


def _others() -> str:
    """Which clusters there are instead, or how to start one."""
    names = ", ".join(f"'{name}'" for name in cluster_names())
    if not names:
        return "start one with: det deploy local cluster-up"
    return f"there are: {names} (det: --cluster-name); start another with: det deploy local cluster-up"


def _up(args: argparse.Namespace, home: Home) -> int:
    try:
        plan = plan_of(args, home)
        announce(home, home.plan(), plan, force=args.force)
        address = up(plan, home, fresh=args.delete_db, force=args.force, password=_password(args))
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 1
    print(f"cluster '{args.name}' is up: {address}", *_next_steps(plan, home), sep="\n  ")
    return 0


def _next_steps(plan: Plan, home: Home) -> list[str]:
    """Return hints for using a cluster that has just started, one per line."""
    authority = home.authority(plan)
    certificate = f" DET_MASTER_CERT_FILE={authority}" if authority is not None else ""
    elsewhere = plan.address != DEFAULT_MASTER
    return [
        "sign in as 'determined'; the password is empty unless you have set one",
        *([f"for det and scripts: export DET_MASTER={plan.address}{certificate}"] if elsewhere else []),
        *_warnings(plan, home),
        "submit a script: det experiment create config.yaml . --follow",
        f"stop it, and keep its data: det deploy local cluster-down{option_of(plan.name)}",
    ]


def _warnings(plan: Plan, home: Home) -> list[str]:
    """What is to be set before scripts of others run here."""
    if _runs_tasks_as_another(plan):
        # Who set one by hand is told in vain, as nothing here knows it.
        return [] if home.initial_password_file() is not None else [SIGNED_IN_BY_SCRIPTS]
    return [AS_ROOT] if os.geteuid() == 0 else []


def _runs_tasks_as_another(plan: Plan) -> bool:
    return bool(os.environ.get(RUN_AS) or plan.settings.get(RUN_AS))


def _back_up_or_restore(args: argparse.Namespace, home: Home) -> int:
    """Back up a cluster, or restore one from a backup."""
    from services.local.backup import CannotBackUp, back_up
    from services.local.restore import restore

    folder = Path(args.folder).resolve()
    try:
        key = _backup_key(args)
        if args.verb == "backup":
            made = back_up(home, folder, key)
            print(f"cluster '{home.name}' is backed up in {folder}: {len(made.files)} files")
        else:
            for what in restore(home, folder, key, args.port, without_damaged=args.without_damaged):
                print(f"lost, since the backup is damaged: {what}", file=sys.stderr)
            plan = home.plan()
            assert plan is not None  # noqa: S101 - for the type checker
            print(f"cluster '{home.name}' is restored, and up: {up(plan, home)}")
    except (CannotBackUp, CannotStart, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _backup_key(args: argparse.Namespace) -> bytes:
    from services.local.backup import CannotBackUp

    key = os.environ.get(PASSPHRASE, "").encode()
    if args.key_file:
        key = Path(args.key_file).read_bytes().strip()
    if len(key) < MIN_KEY_LENGTH:
        raise CannotBackUp(f"give --key-file FILE, or {PASSPHRASE}, of at least {MIN_KEY_LENGTH} characters")
    return key


def _password(args: argparse.Namespace) -> str:
    if not args.initial_password_file:
        return os.environ.get(INITIAL_PASSWORD, "")
    try:
        return Path(args.initial_password_file).read_text().rstrip("\n")
    except OSError as error:
        raise CannotStart(f"--initial-password-file {args.initial_password_file}: {error.strerror}") from None


def _agent(args: argparse.Namespace) -> int:
    if args.verb == "agent-down":
        stopped = agent_down(None if args.all else args.agent_name)
        print(f"stopped: {', '.join(stopped)}" if stopped else "no such agent was running")
        return 0
    try:
        home = agent_up(
            args.host,
            args.port,
            args.agent_name,
            pool=args.pool,
            slots=args.slots if args.slots is not None else 1,
            gpu=args.gpu and args.slots is None,
        )
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 1
    print(f"agent '{args.agent_name}' of cluster '{home.name}' is up")
    return 0


def _add_agent_options(parser: argparse.ArgumentParser, verb: str) -> None:
    parser.add_argument("--agent-name", default=f"det-agent-{os.uname().nodename}")
    if verb == "agent-down":
        parser.add_argument("--all", action="store_true", help="all workers started by agent-up")
        return
    parser.add_argument("--pool", default="default", help="resource pool of the worker")
    parser.add_argument("--slots", type=int, help="CPU slots, instead of its GPUs")
    parser.add_argument("--no-gpu", dest="gpu", action="store_false", help="one CPU slot")
    if verb == "agent-up":
        parser.add_argument("host", help="the cluster's host: this machine")
        parser.add_argument("--port", type=int, default=8080)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m services.local", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, help in (
        ("up", "start"),
        ("down", "stop"),
        ("run", "supervise in the foreground"),
        ("status", "say whether its programs run, and what is wrong with each"),
        ("logs", "show what its programs print"),
        ("reset-password", "give a user a new password, also when no administrator can sign in"),
        ("backup", "back up a running cluster into a folder"),
        ("restore", "make a cluster of a backup"),
        ("agent-up", "start one more worker"),
        ("agent-down", "stop a worker that agent-up started"),
        ("agent-run", "supervise one more worker in the foreground"),
    ):
        sub = verbs.add_parser(verb, help=help)
        sub.add_argument("--name", default=DEFAULT_NAME)
        if verb in ("up", "down"):
            sub.add_argument("--delete-db", action="store_true", help="delete all data")
        if verb == "up":
            _add_up_options(sub)
        if verb == "reset-password":
            reset_password.add_options(sub)
        if verb in ("backup", "restore"):
            sub.add_argument("folder", help="folder of the backup")
            sub.add_argument("--key-file", help="file with the key that encrypts the cluster's keys")
        if verb == "restore":
            sub.add_argument("--port", type=int, help="port of the gateway; default: as before")
            sub.add_argument("--without-damaged", action="store_true", help="leave out what is damaged")
        if verb == "logs":
            sub.add_argument("--no-follow", action="store_true", help="print existing lines only")
        if verb.startswith("agent-"):
            _add_agent_options(sub, verb)
    return parser


def _add_up_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=int, help="port of the gateway; default: as at the last start, at first 8080"
    )
    parser.add_argument("--force", action="store_true", help="replace a running cluster and end its work")
    parser.add_argument(
        "--host", help="address to listen on; default: as at the last start, at first 127.0.0.1"
    )
    parser.add_argument(
        "--initial-password-file", help="password of 'admin' and 'determined', if they have none"
    )
    switch = argparse.BooleanOptionalAction
    parser.add_argument("--tls", action=switch, help="encrypt, with certificates made here")
    parser.add_argument(
        "--agents", "--workers", type=int, help="workers to start; default: as at the last start, at first 1"
    )
    parser.add_argument(
        "--pool",
        action="append",
        help="resource pool of a worker; repeat per worker, the last applies to the rest",
    )
    parser.add_argument("--pools", help="YAML file with the settings of the resource pools")
    parser.add_argument(
        "--metrics",
        type=int,
        help="metrics processes that share the trials; default: as at the last start, at first 1",
    )
    parser.add_argument("--slots", type=int, help="CPU slots per worker, instead of its GPUs")
    parser.add_argument("--gpu", action=switch, help="the GPUs of each worker, or one CPU slot")
    storage = parser.add_mutually_exclusive_group()
    storage.add_argument("--storage", help="directory for checkpoints")
    storage.add_argument("--master-config", metavar="FILE", help="configuration of a Determined 0.25 master")
    parser.add_argument("--python", help="interpreter for trials; default: this one")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting")


if __name__ == "__main__":
    sys.exit(main())
