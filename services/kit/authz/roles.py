"""Groups and role assignments, as every service that checks rights folds them from the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from det_contracts.events import gateway
from det_contracts.events.gateway import AuthzMode, Grant
from services.kit.rules import Key

ALL = "all"


class Group(msgspec.Struct, frozen=True):
    """Users who hold roles together."""

    name: str
    members: tuple[int, ...]
    changed_at: float = 0.0


class GroupsOf(msgspec.Struct, frozen=True):
    """The groups a user is in."""

    ids: tuple[int, ...]


class Held(msgspec.Struct, frozen=True):
    """The roles of one holder."""

    grants: tuple[Grant, ...]


class Judging(msgspec.Struct, frozen=True):
    """How rights are judged."""

    mode: AuthzMode


@dataclass
class Roles:
    """Base of the states of all services that check rights."""

    groups: dict[int, Group] = field(default_factory=dict)
    groups_of: dict[int, GroupsOf] = field(default_factory=dict)
    """By user id."""
    roles: dict[str, Held] = field(default_factory=dict)
    """By holder; see `holder`."""
    judging: dict[str, Judging] = field(default_factory=dict)
    """Under the key "all"."""


def holder(kind: Literal["user", "group"], id: int) -> str:
    """Return the name of a role holder, as used in events."""
    return f"{kind}-{id}"


def is_rbac(state: Roles) -> bool:
    """Whether access is decided by roles."""
    judging = state.judging.get(ALL)
    return judging is not None and judging.mode == "rbac"


def groups_of(state: Roles, user_id: int) -> tuple[int, ...]:
    """Return the ids of a user's groups."""
    groups = state.groups_of.get(user_id)
    return groups.ids if groups is not None else ()


def grants_held_by(state: Roles, name: str) -> tuple[Grant, ...]:
    """Return the grants of a holder."""
    held = state.roles.get(name)
    return held.grants if held is not None else ()


def grants_of(state: Roles, user_id: int) -> Iterator[Grant]:
    """Yield a user's grants, held directly and through groups."""
    yield from grants_held_by(state, holder("user", user_id))
    for id in groups_of(state, user_id):
        yield from grants_held_by(state, holder("group", id))


def group_set(state: Roles, event: gateway.GroupSet, at: float = 0.0) -> Iterable[Key]:
    """Fold a group's creation or change of members."""
    group = state.groups.get(event.group_id)
    before, after = set(group.members) if group is not None else set(), set(event.members)
    state.groups[event.group_id] = Group(event.name, event.members, at)
    yield "groups", event.group_id
    yield from _join(state, event.group_id, sorted(after - before))
    yield from _leave(state, event.group_id, sorted(before - after))


def group_removed(state: Roles, event: gateway.GroupRemoved) -> Iterable[Key]:
    """Fold a group's removal."""
    group = state.groups.pop(event.group_id, None)
    if group is not None:
        yield "groups", event.group_id
        yield from _leave(state, event.group_id, group.members)


def _join(state: Roles, group_id: int, users: Iterable[int]) -> Iterable[Key]:
    for id in users:
        state.groups_of[id] = GroupsOf(tuple(sorted({*groups_of(state, id), group_id})))
        yield "groups_of", id


def _leave(state: Roles, group_id: int, users: Iterable[int]) -> Iterable[Key]:
    for id in users:
        left = tuple(other_id for other_id in groups_of(state, id) if other_id != group_id)
        if left:
            state.groups_of[id] = GroupsOf(left)
        else:
            state.groups_of.pop(id, None)
        yield "groups_of", id


def roles_set(state: Roles, event: gateway.RolesSet) -> Iterable[Key]:
    """Fold a holder's new roles."""
    if event.grants:
        state.roles[event.holder] = Held(event.grants)
    else:
        state.roles.pop(event.holder, None)
    yield "roles", event.holder


def authz_set(state: Roles, event: gateway.AuthzSet) -> Iterable[Key]:
    """Fold a change of the authorization mode."""
    state.judging[ALL] = Judging(event.mode)
    yield "judging", ALL


FOLDS: dict[type, Callable[[Any, Any], Iterable[Key]]] = {
    gateway.GroupSet: group_set,
    gateway.GroupRemoved: group_removed,
    gateway.RolesSet: roles_set,
    gateway.AuthzSet: authz_set,
}
