"""`det token` and the session verbs: credentials that act for a user, and how long they are valid."""

from __future__ import annotations

import argparse
import sys
from typing import Any
from urllib.parse import quote

from determined.cli import output
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg
from determined.transport.rest import Session

_JSON = arg("--json", action="store_true", help="write JSON")
_USER = arg("--user", metavar="NAME", help="of another user; for administrators")


def list_sessions(session: Session, args: argparse.Namespace) -> None:
    """List where a user is logged in."""
    sessions = session.get(_sessions_of(session, args.user))["sessions"]
    if args.json:
        output.print_json(sessions)
        return
    headers = ["Session Id", "Logged in", "Expires", "From", "Client", "Current"]
    fields = ("id", "openedAt", "expiresAt", "address", "client", "current")
    output.table(headers, [[entry[field] for field in fields] for entry in sessions])


def revoke_session(session: Session, args: argparse.Namespace) -> None:
    """End a session, or all except the current one."""
    path = _sessions_of(session, args.user)
    if args.all:
        print(f"Revoked {session.delete(path)['revoked']} sessions")
        return
    if not args.session_id:
        raise Failure("name a session, as 'det user sessions' lists them, or give --all")
    session.delete(f"{path}/{quote(args.session_id, safe='')}")
    print(f"Revoked session {args.session_id}")


def create(session: Session, args: argparse.Namespace) -> None:
    """Create a token. Only the token is written to stdout, so that it can be redirected to a file."""
    body = {"name": args.name, "scope": "read" if args.read_only else "all", "lifespan": args.lifespan}
    made = session.post("/api/v1/tokens", body)
    print(made["token"])
    until = (made["tokenInfo"] or {}).get("expiry", "")
    print(f"Token '{args.name}' is valid until {until} and is not shown again.", file=sys.stderr)


def list_tokens(session: Session, args: argparse.Namespace) -> None:
    """List the tokens of a user, without the secrets."""
    tokens = _tokens(session, args.user)
    if args.json:
        output.print_json(tokens)
        return
    headers = ["Token Id", "Name", "Scope", "Created", "Expires"]
    fields = ("id", "name", "scope", "createdAt", "expiry")
    output.table(headers, [[token[field] for field in fields] for token in tokens])


def revoke(session: Session, args: argparse.Namespace) -> None:
    """Revoke a token."""
    ids = [token["id"] for token in _tokens(session, args.user) if args.token in (token["id"], token["name"])]
    if not ids:
        raise Failure(f"there is no token '{args.token}'; 'det token list' shows those there are")
    for id in ids:
        session.delete(f"/api/v1/tokens/{quote(id, safe='')}")
    print(f"Revoked token '{args.token}'")


def _tokens(session: Session, user: str | None) -> list[dict[str, Any]]:
    params = {"username": user} if user else None
    tokens: list[dict[str, Any]] = session.get("/api/v1/tokens", params)["tokenInfo"]
    return tokens


def _sessions_of(session: Session, user: str | None) -> str:
    path = f"/api/v1/users/{quote(user, safe='')}/by-username" if user else "/api/v1/me"
    return f"/api/v1/users/{session.get(path)['user']['id']}/sessions"


SESSION_VERBS = (
    Verb("sessions", "list where a user is logged in", list_sessions, (_USER, _JSON)),
    Verb(
        "revoke-session",
        "end sessions",
        revoke_session,
        (
            arg("session_id", nargs="?", help="as listed by 'det user sessions'"),
            arg("--all", action="store_true", help="all except the current one"),
            _USER,
        ),
    ),
)
NOUN = Noun(
    "token",
    "create and revoke API tokens",
    (
        Verb(
            "create",
            "create a token and write it to stdout",
            create,
            (
                arg("name", help="purpose of the token"),
                arg("--read-only", action="store_true", help="allow only reading"),
                arg("--lifespan", default="30d", metavar="TIME", help="such as 12h or 90d; default: 30d"),
            ),
        ),
        Verb("list ls", "list tokens", list_tokens, (_USER, _JSON)),
        Verb("revoke", "revoke a token", revoke, (arg("token", help="its id or name"), _USER)),
    ),
    default="list",
)
