"""`det user create` and the verbs that change a user (client spec, section 6)."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import quote

from determined.cli.connection import ask_secret
from determined.cli.failure import Failure
from determined.cli.grammar import Verb, arg
from determined.transport import identity
from determined.transport.rest import Session
from determined.transport.token_store import TokenStore

ADMINISTER = "PERMISSION_TYPE_ADMINISTRATE_USER"
_NAME = arg("username", help="name of the user")


def create(session: Session, args: argparse.Namespace) -> None:
    """Create a user. A remote user logs in elsewhere and has no password."""
    _check_administrator(session)
    password = "" if args.remote else _new_password(args.username)
    user = {"username": args.username, "admin": args.admin, "active": True, "remote": args.remote}
    body = {"user": user, "password": identity.hashed(password), "isHashed": True}
    session.post("/api/v1/users", body)
    print(f"Created user '{args.username}'")


def change_password(session: Session, args: argparse.Namespace) -> None:
    """Change a password: one's own, or as an administrator another user's.

    Existing sessions end; one's own is renewed.
    """
    me = identity.current_user(session)
    name = args.target_user or me
    if name != me:
        _check_administrator(session)
    password = _new_password(name)
    session.post(f"{_path(session, name)}/password", identity.hashed(password))
    if name == me:
        store = TokenStore(session.master)
        # The change has ended this session, too.
        session.token = None
        store.save(name, identity.log_in(session, name, password), activate=store.active_user() == name)
    print(f"Changed the password of user '{name}'")


def activate(session: Session, args: argparse.Namespace) -> None:
    """Allow a user to log in."""
    session.patch(_path(session, args.username), {"active": True})
    print(f"Activated user '{args.username}'")


def deactivate(session: Session, args: argparse.Namespace) -> None:
    """Prevent a user from logging in; their experiments and data are kept."""
    session.patch(_path(session, args.username), {"active": False})
    print(f"Deactivated user '{args.username}'")


def rename(session: Session, args: argparse.Namespace) -> None:
    """Change a user's login name."""
    session.patch(_path(session, args.target_user), {"username": args.new_username})
    print(f"Renamed user '{args.target_user}' to '{args.new_username}'")


def link_with_provider(session: Session, args: argparse.Namespace) -> None:
    """Make the user sign in with the provider. The first provider account with this name is linked."""
    session.patch(_path(session, args.username), {"remote": True})
    print(f"User '{args.username}' now signs in with the provider and no longer with a password")


def unlink_from_provider(session: Session, args: argparse.Namespace) -> None:
    """Make the user log in with a password again."""
    session.patch(_path(session, args.username), {"remote": False})
    print(f"User '{args.username}' now logs in with a password: det user change-password {args.username}")


def link(session: Session, args: argparse.Namespace) -> None:
    """Set the user's identity on the agents' hosts."""
    body = {
        "agentUid": args.agent_uid,
        "agentUser": args.agent_user,
        "agentGid": args.agent_gid,
        "agentGroup": args.agent_group,
    }
    session.patch(_path(session, args.username), {"agentUserGroup": body})
    print(f"Linked user '{args.username}' with {args.agent_user}:{args.agent_group} on agents")


def _path(session: Session, name: str) -> str:
    user: dict[str, Any] = session.get(f"/api/v1/users/{quote(name, safe='')}/by-username")["user"]
    return f"/api/v1/users/{user['id']}"


def _check_administrator(session: Session) -> None:
    """Raise Failure if the cluster would refuse the request for which a password is about to be typed."""
    summary = session.get("/api/v1/permissions/summary")
    everywhere = {assignment["roleId"] for assignment in summary["assignments"] if assignment["scopeCluster"]}
    for role in summary["roles"]:
        if role["roleId"] in everywhere and any(p["id"] == ADMINISTER for p in role["permissions"]):
            return
    raise Failure("this needs the permission to administer users: ask an administrator")


def _new_password(name: str) -> str:
    advice = "type the new password twice, or pipe it to this command in two lines"
    first = ask_secret(f"New password for user '{name}': ", advice)
    if first != ask_secret("Confirm password: ", advice):
        raise Failure("the two passwords differ")
    return first


VERBS = (
    Verb(
        "create",
        "create a user",
        create,
        (
            _NAME,
            arg("--admin", action="store_true", help="make the user an administrator"),
            arg("--remote", action="store_true", help="the user logs in elsewhere, without a password"),
        ),
    ),
    Verb(
        "change-password",
        "change a password",
        change_password,
        (arg("target_user", nargs="?", help="default: yourself"),),
    ),
    Verb("activate", "activate a user", activate, (_NAME,)),
    Verb("deactivate", "deactivate a user", deactivate, (_NAME,)),
    Verb(
        "rename",
        "rename a user",
        rename,
        (arg("target_user", help="current name"), arg("new_username", help="new name")),
    ),
    Verb(
        "link-with-provider",
        "let a user sign in with the provider instead of a password",
        link_with_provider,
        (_NAME,),
    ),
    Verb("unlink-from-provider", "let a user log in with a password again", unlink_from_provider, (_NAME,)),
    Verb(
        "link-with-agent-user",
        "link a user with one of the agents' hosts",
        link,
        (
            _NAME,
            arg("--agent-uid", type=int, required=True, metavar="N", help="user id on the hosts"),
            arg("--agent-user", required=True, metavar="NAME", help="user name on the hosts"),
            arg("--agent-gid", type=int, required=True, metavar="N", help="group id on the hosts"),
            arg("--agent-group", required=True, metavar="NAME", help="group name on the hosts"),
        ),
    ),
)
