"""Gives a user a new password with the keys of the cluster, for when nobody can sign in who could do it.

    det deploy local reset-password admin
    python -m services.local.reset_password --nats nats://127.0.0.1:4222 --credentials gateway.creds admin

The first is for a cluster on this machine, the second for services that were started by hand. The gateway
must be running. The user's sessions and those of programs that signed in with the old password end. An
inactive account is made active; one that signs in at an identity provider can sign in with the password as
well. The change is in the audit list, with the account on the host that made it.
"""

from __future__ import annotations

import argparse
import getpass
import sys
from pathlib import Path

from services.kit import passwords
from services.kit.os_user import os_user
from services.local.home import Home, Plan
from services.local.preconditions import is_running

ADVICE = "run this again once it does"


class CannotReset(Exception):
    """The password was not changed. The text says why."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say whose password is set, and to what."""
    parser.add_argument("username", help="name of the user")
    parser.add_argument("--admin", action="store_true", help="make the user an administrator, too")
    parser.add_argument(
        "--password-file", help="file with the new password, - for standard input; default: ask for it"
    )


def reset_here(home: Home, plan: Plan, args: argparse.Namespace) -> int:
    """Reset a password in a cluster on this machine. Returns the exit status."""
    if not is_running(home):
        print(f"cluster '{home.name}' is not running; start it: det deploy local cluster-up", file=sys.stderr)
        return 1
    args.nats = plan.broker_url((home.read("ports.json") or {})["broker"])
    args.credentials = home.path / "secrets" / "gateway.creds"
    args.tls_ca = home.authority(plan)
    _run(args)
    return 0


def _run(args: argparse.Namespace) -> None:
    # Imported here: other commands of a local cluster never speak with the broker, and start sooner without.
    from services.local import broker_command

    try:
        password = _new_password(args.username, args.password_file)
    except CannotReset as error:
        sys.exit(str(error))
    broker_command.run(_reset(args, password), CannotReset, ADVICE)
    print(f"user '{args.username}' can sign in with the new password")


async def _reset(args: argparse.Namespace, password: str) -> None:
    from det_contracts.commands import ResetPassword
    from det_contracts.problems import Refused
    from services.kit.bus import BusClient
    from services.local import broker_command

    stored = passwords.to_stored(passwords.client_hash(password))
    command = ResetPassword(username=args.username, password=stored, admin=args.admin, by=f"'{os_user()}'")
    async with broker_command.connection_to(args) as connection:
        try:
            await BusClient(connection).command(command)
        except Refused as error:
            raise CannotReset(str(error)) from None


def _new_password(username: str, file: str | None) -> str:
    password = _read(file) if file is not None else _ask(username)
    if not password:
        raise CannotReset("the new password is empty; nothing was changed")
    return password


def _ask(username: str) -> str:
    try:
        password = getpass.getpass(f"New password for user '{username}': ")
        again = getpass.getpass("New password again: ")
    except (EOFError, KeyboardInterrupt):
        raise CannotReset(
            "no password was given; nothing was changed. Without a terminal, use --password-file"
        ) from None
    if again != password:
        raise CannotReset("the two passwords differ; nothing was changed")
    return password


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.readline().rstrip("\n")
    try:
        return Path(file).read_text().rstrip("\n")
    except (OSError, ValueError) as error:
        raise CannotReset(f"--password-file {file} cannot be read: {error}") from None


def main() -> None:
    """Reset a password where services were started by hand. Exits with status 1 and the reason on failure."""
    from services.local import broker_command

    parser = broker_command.parser(__doc__, "the gateway's")
    add_options(parser)
    _run(parser.parse_args())


if __name__ == "__main__":
    main()
