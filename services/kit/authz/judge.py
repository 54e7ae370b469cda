"""Rules on one wish of somebody: the same for the gateway at its door and for the owner of a fact."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from det_contracts.problems import Problem, Refused
from services.kit.authz.permissions import ADMINISTRATION, EVERYBODY, NOT_FOR_SCRIPTS, OWNED, Kind, Permission


class Person(msgspec.Struct, frozen=True):
    """What of a user matters to what they may do."""

    id: int
    username: str
    admin: bool = False
    active: bool = True


class Thing(msgspec.Struct, frozen=True):
    """What somebody wants to act upon."""

    owner: str
    """The name under which it was made; empty: it is nobody's own."""


class Wish(msgspec.Struct, frozen=True):
    """One permission for one thing."""

    permission: Permission
    kind: Kind = "cluster"
    id: Any = None


class Known(Protocol):
    """What a judge looks up."""

    def person(self, name: str) -> Person | None:
        """Whoever has or had the name."""

    def thing(self, kind: Kind, id: Any) -> Thing | None:
        """None where there is no such thing, which is for others to say."""


def require(known: Known, name: str, wishes: Iterable[Wish], *, script: str = "") -> None:
    """Raises `Refused` (403) unless the user of that name may do all of it.

    `script`: the run whose script asks in their name, if one does.
    """
    for wish in wishes:
        if wish.permission in ("anybody", "service"):
            continue
        person = known.person(name)
        if person is not None and not person.active:
            raise forbidden(f"user '{name}' is not active")
        if script and wish.permission in NOT_FOR_SCRIPTS:
            raise forbidden(
                f"a script may not do this, whoever it belongs to: it takes '{wish.permission}', "
                "which is for people: det user login"
            )
        if script and _is_anothers_run(known, wish, script):
            raise forbidden(f"the token is that of {script}, which does not belong to run {wish.id}")
        _basic(known, name, person, wish)


def _is_anothers_run(known: Known, wish: Wish, script: str) -> bool:
    of_run = wish.permission == "speak" and wish.kind == "run"
    return of_run and wish.id != script and known.thing("run", wish.id) is not None


def _basic(known: Known, name: str, person: Person | None, wish: Wish) -> None:
    if wish.permission == "own_account" and wish.kind != "cluster":
        owner = known.thing(wish.kind, wish.id)
        if owner is None or _same(known, owner.owner, name, person):
            return
        wish = Wish("administer_users")
    if person is not None and person.admin:
        return
    if wish.permission in ADMINISTRATION:
        raise forbidden(f"user '{name}' is no administrator: it takes one to {_WORDS[wish.permission]}")
    if wish.permission not in OWNED or wish.permission in EVERYBODY:
        return
    thing = known.thing(wish.kind, wish.id)
    if thing is None or _same(known, thing.owner, name, person):
        return
    raise forbidden(
        f"{wish.kind} {wish.id} belongs to user '{thing.owner or 'admin'}': user '{name}' may view and fork "
        f"it; to {_WORDS.get(wish.permission, wish.permission)} it takes its owner or an administrator"
    )


_WORDS: dict[str, str] = {
    "administer_users": "change other users",
    "administer_cluster": "change or see how the cluster is set up",
    "assign_roles": "give roles",
    "control": "change what it does",
    "delete": "delete it",
    "speak": "speak for it",
    "control_project": "change it",
    "control_workspace": "change it",
}


def _same(known: Known, owner: str, name: str, person: Person | None) -> bool:
    """Whether two names are one user's, who may have had both."""
    if owner == name:
        return True
    other = known.person(owner)
    return person is not None and other is not None and other.id == person.id


def forbidden(message: str) -> Refused:
    """We know who asks, and they may not."""
    return Refused(Problem("permission_denied", message))
