"""`det user`: the user's identity on the master (client spec, section 6)."""

from __future__ import annotations

import argparse
import contextlib
import os

from determined.cli import output
from determined.cli.access import SESSION_VERBS
from determined.cli.connection import ask_password
from determined.cli.grammar import Noun, Verb, arg
from determined.cli.user_change import VERBS
from determined.common.api import errors
from determined.transport import identity
from determined.transport.rest import Session
from determined.transport.token_store import TokenStore


def log_in(session: Session, args: argparse.Namespace) -> None:
    """Ask for the password, store the token, and make this user the default."""
    if args.provider:
        # Imported here, because nothing else needs a web server and a browser.
        from determined.cli import provider_login

        name, token = provider_login.sign_in(session)
        TokenStore(session.master).save(name, token, activate=True)
        print(f"Logged in as user '{name}'")
        return
    name = args.username or session.user or os.environ.get("DET_USER") or identity.DEFAULT_USER
    token = identity.log_in(session, name, ask_password(name))
    TokenStore(session.master).save(name, token, activate=True)
    print(f"Logged in as user '{name}'")


def log_out(session: Session, args: argparse.Namespace) -> None:
    """Revoke tokens and remove them from the store."""
    store = TokenStore(session.master)
    names = store.users() if args.all else [session.user or store.active_user() or identity.DEFAULT_USER]
    for name in names:
        session.token = store.token(name)
        if session.token is None:
            output.warn(f"User '{name}' is not logged in")
            continue
        with contextlib.suppress(errors.UnauthenticatedException):  # it has forgotten the token already
            session.post("/api/v1/auth/logout")
        store.drop(name, deactivate=True)
        print(f"Logged out user '{name}'")


def who_am_i(session: Session, args: argparse.Namespace) -> None:
    """Show the user that commands run as."""
    print(f"You are logged in as user '{identity.current_user(session)}'")


def list_users(session: Session, args: argparse.Namespace) -> None:
    """List all users of the cluster."""
    headers = ["User Id", "Username", "Admin", "Active", "Remote", "Agent Uid", "Agent Gid", "Agent User"]
    rows = []
    for user in session.get("/api/v1/users")["users"]:
        agent = user.get("agentUserGroup") or {}
        row = [user.get(field) for field in ("id", "username", "admin", "active", "remote")]
        row += [agent.get(field, "N/A") for field in ("agentUid", "agentGid", "agentUser", "agentGroup")]
        rows.append([*row, user.get("displayName")])
    output.table([*headers, "Agent Group", "Display Name"], rows)


NOUN = Noun(
    "user u",
    "log in and out, manage users",
    (
        Verb(
            "login",
            "log in",
            log_in,
            (
                arg("username", nargs="?", help=f"default: {identity.DEFAULT_USER}"),
                arg(
                    "--provider",
                    action="store_true",
                    help="log in with the cluster's identity provider, in a browser",
                ),
            ),
            login=False,
        ),
        Verb(
            "logout",
            "log out",
            log_out,
            (arg("-a", "--all", action="store_true", help="all users in this machine's token store"),),
            login=False,
        ),
        Verb("whoami", "show who is logged in", who_am_i),
        Verb("list ls", "list users", list_users),
        *VERBS,
        *SESSION_VERBS,
    ),
    default="list",
)
