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
    PERMISSIONS,
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


class Target(msgspec.Struct, frozen=True):
    """A thing that a user wants to act on."""

    owner: str
    """The username under which it was created; empty if it belongs to no user."""
    workspace_id: int = 0
    """The workspace it is filed in; 0 for none."""


class AccessRequest(msgspec.Struct, frozen=True):
    """One permission on one thing."""

    permission: Permission
    kind: Kind = "cluster"
    id: Any = None


class RightsLookup(Protocol):
    """What a judge looks up."""

    @property
    def rbac(self) -> bool:
        """Whether roles decide; otherwise ownership does."""

    def grants(self, user_id: int) -> Iterable[Grant]:
        """Return the roles that a user holds, directly and through groups."""

    def person(self, name: str) -> Person | None:
        """Return the user who has or had the name."""

    def target(self, kind: Kind, id: Any) -> Target | None:
        """Return the thing, or None if it does not exist, which others must report."""


def require(lookup: RightsLookup, name: str, requests: Iterable[AccessRequest], *, script: str = "") -> None:
    """Raise `Refused` (403) unless the user with that name may do all of it.

    `script` is the run whose script makes the request in the user's name, if any.
    """
    for request in requests:
        if request.permission in ("anybody", "service"):
            continue
        person = lookup.person(name)
        # In the judge, not only at the login: a deactivated user's tokens and scripts may still be there.
        if person is not None and not person.active:
            raise forbidden(f"user '{name}' is not active")
        # Code of others runs in scripts, and must not be able to give itself its owner's account or the
        # cluster.
        if script and request.permission in NOT_FOR_SCRIPTS:
            raise forbidden(
                f"a script may not do this, regardless of its owner: it needs '{request.permission}', "
                "which is for people: det user login"
            )
        if lookup.rbac:
            _check_by_roles(lookup, name, person, request, script)
        else:
            _check_by_owner(lookup, name, person, request)
        # After the check of the user, so that the answer says nothing about runs that the user must not see.
        if script and _is_foreign_run(lookup, request, script):
            raise forbidden(f"the token is that of {script}, which does not belong to run {request.id}")


def _is_foreign_run(lookup: RightsLookup, request: AccessRequest, script: str) -> bool:
    of_run = request.permission == "speak" and request.kind == "run"
    return of_run and request.id != script and lookup.target("run", request.id) is not None


def _account_request(
    lookup: RightsLookup, name: str, person: Person | None, request: AccessRequest
) -> AccessRequest:
    """Return the permission needed to change an account: for one's own, only to be logged in."""
    if request.permission != "own_account" or request.kind == "cluster":
        return request
    owner = lookup.target(request.kind, request.id)
    # What does not exist is left to the owner of the fact, which answers that it does not.
    own = owner is None or _is_same_user(lookup, owner.owner, name, person)
    return AccessRequest("logged_in") if own else AccessRequest("administer_users")


def granted_permissions(grants: Iterable[Grant], workspace_id: int) -> frozenset[Permission]:
    """Return what roles permit in a workspace; for 0, in the cluster as a whole."""
    permissions: frozenset[Permission] = frozenset()
    for grant in grants:
        if grant.workspace_id in (0, workspace_id) and grant.role in OF_ROLE:
            permissions |= OF_ROLE[grant.role]
    return permissions


class Access(msgspec.Struct, frozen=True):
    """All that a user may do, for clients that say so before anything is tried."""

    rbac: bool
    """Whether roles decide; otherwise ownership does."""
    everywhere: frozenset[Permission]
    own: frozenset[Permission] = frozenset()
    """In addition on what the user owns."""
    workspaces: dict[int, frozenset[Permission]] = {}
    """In addition in single workspaces, by id."""


_OF_PEOPLE = frozenset(PERMISSIONS) - {"service"}


def access_of(lookup: RightsLookup, name: str) -> Access:
    """Return what `require` lets a user do: on anything, on what is theirs, and in single workspaces."""
    person = lookup.person(name)
    if person is not None and person.admin:
        return Access(lookup.rbac, _OF_PEOPLE)
    if not lookup.rbac:
        return Access(False, _OF_PEOPLE - ADMINISTRATION - OWNED, OWNED)
    grants = list(lookup.grants(person.id)) if person is not None else []
    everywhere = EVERYBODY | granted_permissions(grants, 0)
    spaces = {grant.workspace_id for grant in grants} - {0}
    return Access(True, everywhere, workspaces={id: granted_permissions(grants, id) for id in sorted(spaces)})


def _check_by_roles(
    lookup: RightsLookup, name: str, person: Person | None, request: AccessRequest, script: str
) -> None:
    request = _account_request(lookup, name, person, request)
    if request.permission in EVERYBODY or request.kind in ("listed", "body") or (person and person.admin):
        return
    target = lookup.target(request.kind, request.id) if request.kind != "cluster" else Target("")
    if target is None:
        return
    may = granted_permissions(lookup.grants(person.id) if person is not None else (), target.workspace_id)
    if request.permission in may:
        return
    # A running script may finish what it began, even if its owner has lost the role.
    if (
        script
        and request.permission in ("view", "speak")
        and _is_same_user(lookup, target.owner, name, person)
    ):
        return
    # Without the right to see it, its existence must not show in the difference between 403 and 404.
    if request.kind != "cluster" and "view" not in may:
        raise not_found("task" if request.kind == "page" else request.kind, request.id)
    raise forbidden(_describe_missing_role(name, request, target.workspace_id))


def _describe_missing_role(name: str, request: AccessRequest, workspace_id: int) -> str:
    who = [role for role in ROLES if request.permission in OF_ROLE[role]]
    where = f"in workspace {workspace_id}" if workspace_id else "in the cluster"
    what = _ACTIONS.get(request.permission, f"'{request.permission}'")
    return f"user '{name}' lacks a role: {' or '.join(who)} {where} is needed to {what}"


def _check_by_owner(lookup: RightsLookup, name: str, person: Person | None, request: AccessRequest) -> None:
    request = _account_request(lookup, name, person, request)
    if person is not None and person.admin:
        return
    if request.permission in ADMINISTRATION:
        raise forbidden(
            f"user '{name}' is not an administrator, which is needed to {_ACTIONS[request.permission]}"
        )
    if request.permission not in OWNED or request.permission in EVERYBODY:
        return
    target = lookup.target(request.kind, request.id)
    if target is None or _is_same_user(lookup, target.owner, name, person):
        return
    raise forbidden(
        f"{request.kind} {request.id} belongs to user '{target.owner or 'admin'}': user '{name}' may view "
        "and fork it; only its owner or an administrator may "
        f"{_ACTIONS.get(request.permission, request.permission)}"
    )


_ACTIONS: dict[str, str] = {
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


def _is_same_user(lookup: RightsLookup, owner: str, name: str, person: Person | None) -> bool:
    """Whether two names belong to one user, who may have had both."""
    if owner == name:
        return True
    # By id, since a renamed user still owns what was created under the former name.
    other = lookup.person(owner)
    return person is not None and other is not None and other.id == person.id


def forbidden(message: str) -> Refused:
    """Build a refusal for a known user without the necessary permission."""
    return Refused(Problem("permission_denied", message))
