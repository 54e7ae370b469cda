"""`det user-group`: groups of users that share roles (client spec, section 6)."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import quote

from determined.cli import output
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg
from determined.cli.paging import paging_args, post_pages
from determined.transport.rest import Session

Object = dict[str, Any]
_JSON = arg("--json", action="store_true", help="print as JSON")
_GROUP = arg("group_name", help="name of the group")
_USERS = arg("usernames", help="names of users, separated by commas")
PATH = "/api/v1/groups"


def group_id(session: Session, name: str) -> int:
    """Return the id of the group with this name. Raises `Failure`."""
    groups = session.post(f"{PATH}/search", {"name": name, "limit": 1})["groups"]
    if not groups:
        raise Failure(f"could not find user group name {name}")
    return int(groups[0]["group"]["groupId"])


def user_id(session: Session, name: str) -> int:
    """Return the id of the user with this name."""
    return int(session.get(f"/api/v1/users/{quote(name, safe='')}/by-username")["user"]["id"])


def create(session: Session, args: argparse.Namespace) -> None:
    """Create a group."""
    users = {name: user_id(session, name) for name in args.add_user}
    made = session.post(PATH, {"name": args.group_name, "addUsers": list(users.values())})["group"]
    print(f"user group with name {made['name']} and ID {made['groupId']} created")
    for name in users:
        print(f"{name} was added to the group")


def delete(session: Session, args: argparse.Namespace) -> None:
    """Delete a group. Its members lose the roles they have through it."""
    question = (
        "Deleting a group removes from its members the roles they have through it. Do you wish to proceed?"
    )
    if not args.yes and not output.confirm(question):
        print("Skipping group deletion.")
        return
    id = group_id(session, args.group_name)
    session.delete(f"{PATH}/{id}")
    print(f"user group with name {args.group_name} and ID {id} deleted")


def list_groups(session: Session, args: argparse.Namespace) -> None:
    """List all groups, or those that a user is in."""
    member = args.groups_user_belongs_to
    body = {"userId": user_id(session, member)} if member else {}
    groups = post_pages(session, f"{PATH}/search", "groups", args, body)
    if args.json:
        output.print_json({"groups": groups})
        return
    rows = [[group["group"]["groupId"], group["group"]["name"], group["numMembers"]] for group in groups]
    output.table(["Group ID", "Name", "Members"], rows)


def describe(session: Session, args: argparse.Namespace) -> None:
    """Show a group and its members."""
    group = session.get(f"{PATH}/{group_id(session, args.group_name)}")["group"]
    if args.json:
        output.print_json(group)
        return
    print(f"group ID {group['groupId']} group name {group['name']} with users added")
    fields = ("id", "username", "displayName", "admin", "active")
    rows = [[member[field] for field in fields] for member in group["users"]]
    output.table(["ID", "Username", "Display Name", "Admin", "Active"], rows)


def add_users(session: Session, args: argparse.Namespace) -> None:
    """Add users to a group."""
    _change(session, args, "addUsers", "added to group")


def remove_users(session: Session, args: argparse.Namespace) -> None:
    """Remove users from a group."""
    _change(session, args, "removeUsers", "removed from the group")


def _change(session: Session, args: argparse.Namespace, field: str, done: str) -> None:
    id = group_id(session, args.group_name)
    users = {name: user_id(session, name) for name in args.usernames.split(",") if name}
    session.put(f"{PATH}/{id}", {field: list(users.values())})
    print(f"user group with ID {id} name {args.group_name}")
    for name, user in users.items():
        print(f"user {done} with username {name} and ID {user}")


def rename(session: Session, args: argparse.Namespace) -> None:
    """Rename a group."""
    id = group_id(session, args.old_group_name)
    session.put(f"{PATH}/{id}", {"name": args.new_group_name})
    print(f"user group with ID {id} name changed from {args.old_group_name} to {args.new_group_name}")


NOUN = Noun(
    "user-group ug",
    "manage groups of users",
    (
        Verb(
            "create",
            "create a user group",
            create,
            (
                _GROUP,
                arg(
                    "--add-user",
                    action="append",
                    default=[],
                    metavar="NAME",
                    help="a member; repeatable",
                ),
            ),
        ),
        Verb(
            "delete",
            "delete a user group",
            delete,
            (_GROUP, arg("--yes", action="store_true", help="do not ask")),
        ),
        Verb(
            "list ls",
            "list user groups",
            list_groups,
            (
                *paging_args(),
                arg("--groups-user-belongs-to", metavar="NAME", help="only those that the user is in"),
                _JSON,
            ),
        ),
        Verb("describe", "describe a user group", describe, (_GROUP, _JSON)),
        Verb("add-user", "add users to a group", add_users, (_GROUP, _USERS)),
        Verb("remove-user", "remove users from a group", remove_users, (_GROUP, _USERS)),
        Verb(
            "change-name",
            "change the name of a user group",
            rename,
            (arg("old_group_name", help="current name"), arg("new_group_name", help="new name")),
        ),
    ),
    default="list",
)
