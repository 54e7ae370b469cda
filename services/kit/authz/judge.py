"""Decides whether a user may do something: the same for the gateway and for the owner of a fact."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from det_contracts.events.gateway import Grant
from det_contracts.problems import Problem, Refused, not_found
from services.kit.authz.permissions import (
    ADMINISTRATION,
    EVERYBODY,
    NOT_FOR_SCRIPTS,
    OF_ROLE,
    OWNED,
    ROLES,
    Kind,
    Permission,
)


class Person(msgspec.Struct, frozen=True):
    """The properties of a user that determine their rights."""

    id: int
    username: str
    admin: bool = False
    active: bool = True


class Thing(msgspec.Struct, frozen=True):
    """A thing that a user wants to act on."""

    owner: str
    """The username under which it was created; empty if it belongs to no user."""
    workspace_id: int = 0
    """The workspace it is filed in; 0 for none."""


class Wish(msgspec.Struct, frozen=True):
    """One permission on one thing."""

    permission: Permission
    kind: Kind = "cluster"
    id: Any = None


class Known(Protocol):
    """What a judge looks up."""

    @property
    def rbac(self) -> bool:
        """Whether roles decide; otherwise ownership does."""

    def grants(self, user_id: int) -> Iterable[Grant]:
        """Return the roles that a user holds, directly and through groups."""

    def person(self, name: str) -> Person | None:
        """Return the user who has or had the name."""

    def thing(self, kind: Kind, id: Any) -> Thing | None:
        """Return the thing, or None if it does not exist, which others must report."""


def require(known: Known, name: str, wishes: Iterable[Wish], *, script: str = "") -> None:
    """Raise `Refused` (403) unless the user with that name may do all of it.

    `script` is the run whose script makes the request in the user's name, if any.
    """
    for wish in wishes:
        if wish.permission in ("anybody", "service"):
            continue
        person = known.person(name)
        if person is not None and not person.active:
            raise forbidden(f"user '{name}' is not active")
        if script and wish.permission in NOT_FOR_SCRIPTS:
            raise forbidden(
                f"a script may not do this, regardless of its owner: it needs '{wish.permission}', "
                "which is for people: det user login"
            )
        if known.rbac:
            _by_roles(known, name, person, wish, script)
        else:
            _basic(known, name, person, wish)
        if script and _is_anothers_run(known, wish, script):
            raise forbidden(f"the token is that of {script}, which does not belong to run {wish.id}")


def _is_anothers_run(known: Known, wish: Wish, script: str) -> bool:
    of_run = wish.permission == "speak" and wish.kind == "run"
    return of_run and wish.id != script and known.thing("run", wish.id) is not None


def _of_account(known: Known, name: str, person: Person | None, wish: Wish) -> Wish:
    """Return the permission needed to change an account: for one's own, only to be logged in."""
    if wish.permission != "own_account" or wish.kind == "cluster":
        return wish
    owner = known.thing(wish.kind, wish.id)
    own = owner is None or _same(known, owner.owner, name, person)
    return Wish("logged_in") if own else Wish("administer_users")


def permitted(grants: Iterable[Grant], workspace_id: int) -> frozenset[Permission]:
    """Return what roles permit in a workspace; for 0, in the cluster as a whole."""
    found: frozenset[Permission] = frozenset()
    for grant in grants:
        if grant.workspace_id in (0, workspace_id) and grant.role in OF_ROLE:
            found |= OF_ROLE[grant.role]
    return found


def _by_roles(known: Known, name: str, person: Person | None, wish: Wish, script: str) -> None:
    wish = _of_account(known, name, person, wish)
    if wish.permission in EVERYBODY or wish.kind in ("listed", "body") or (person and person.admin):
        return
    thing = known.thing(wish.kind, wish.id) if wish.kind != "cluster" else Thing("")
    if thing is None:
        return
    may = permitted(known.grants(person.id) if person is not None else (), thing.workspace_id)
    if wish.permission in may:
        return
    # A running script may finish what it began, even if its owner has lost the role.
    if script and wish.permission in ("view", "speak") and _same(known, thing.owner, name, person):
        return
    if wish.kind != "cluster" and "view" not in may:
        raise not_found("task" if wish.kind == "page" else wish.kind, wish.id)
    raise forbidden(_lacking(name, wish, thing.workspace_id))


def _lacking(name: str, wish: Wish, workspace_id: int) -> str:
    who = [role for role in ROLES if wish.permission in OF_ROLE[role]]
    where = f"in workspace {workspace_id}" if workspace_id else "in the cluster"
    what = _WORDS.get(wish.permission, f"'{wish.permission}'")
    return f"user '{name}' lacks a role: {' or '.join(who)} {where} is needed to {what}"


def _basic(known: Known, name: str, person: Person | None, wish: Wish) -> None:
    wish = _of_account(known, name, person, wish)
    if person is not None and person.admin:
        return
    if wish.permission in ADMINISTRATION:
        raise forbidden(
            f"user '{name}' is not an administrator, which is needed to {_WORDS[wish.permission]}"
        )
    if wish.permission not in OWNED or wish.permission in EVERYBODY:
        return
    thing = known.thing(wish.kind, wish.id)
    if thing is None or _same(known, thing.owner, name, person):
        return
    raise forbidden(
        f"{wish.kind} {wish.id} belongs to user '{thing.owner or 'admin'}': user '{name}' may view and fork "
        f"it; only its owner or an administrator may {_WORDS.get(wish.permission, wish.permission)}"
    )


_WORDS: dict[str, str] = {
    "administer_users": "change other users",
    "administer_cluster": "change or see the cluster's configuration",
    "assign_roles": "give roles",
    "read_log": "read the log of the whole cluster",
    "view": "see it",
    "create": "create something there",
    "create_task": "start a task there",
    "edit": "change its description",
    "control": "change what it does",
    "control_task": "change what it does",
    "delete": "delete it",
    "speak": "report for it",
    "create_project": "create a project there",
    "edit_project": "change its description",
    "control_project": "change it",
    "create_workspace": "create a workspace",
    "control_workspace": "change it",
}


def _same(known: Known, owner: str, name: str, person: Person | None) -> bool:
    """Whether two names belong to one user, who may have had both."""
    if owner == name:
        return True
    other = known.person(owner)
    return person is not None and other is not None and other.id == person.id


def forbidden(message: str) -> Refused:
    """Build a refusal for a known user without the necessary permission."""
    return Refused(Problem("permission_denied", message))
