"""Folds events about groups, roles, quotas and pool bindings, and maintains their indexes."""

from __future__ import annotations

from collections.abc import Iterable

from det_contracts.envelope import Recorded
from det_contracts.events import gateway
from services.kit import pool_bindings
from services.kit.authz import roles
from services.kit.quotas import records
from services.kit.rules import Key
from services.people.domain.indexed_records import record_highest_id
from services.people.domain.state import People


def group_set(state: People, recorded: Recorded) -> Iterable[Key]:
    """A group was created, renamed, or got other members."""
    event: gateway.GroupSet = recorded.event
    _remove_group_name(state, event.group_id)
    state.group_names[event.name.lower()] = event.group_id
    yield from roles.group_set(state, event, recorded.at)
    yield from record_highest_id(state, "groups", event.group_id)


def group_removed(state: People, recorded: Recorded) -> Iterable[Key]:
    """A group was removed."""
    event: gateway.GroupRemoved = recorded.event
    _remove_group_name(state, event.group_id)
    yield from roles.group_removed(state, event)


def _remove_group_name(state: People, id: int) -> None:
    group = state.groups.get(id)
    # A log may hold two groups whose names differ in case only, from before that was refused. The name is the
    # other's then.
    if group is not None and state.group_names.get(group.name.lower()) == id:
        del state.group_names[group.name.lower()]


def roles_set(state: People, recorded: Recorded) -> Iterable[Key]:
    """A holder's roles were changed."""
    event: gateway.RolesSet = recorded.event
    before = {grant.workspace_id for grant in roles.grants_held_by(state, event.holder)}
    after = {grant.workspace_id for grant in event.grants}
    for id in before - after:
        state.granted_in.discard(id, event.holder)
    for id in after - before:
        state.granted_in.add(id, event.holder)
    return roles.roles_set(state, event)


def authz_set(state: People, recorded: Recorded) -> Iterable[Key]:
    """The authorization mode was changed."""
    return roles.authz_set(state, recorded.event)


def quota_set(state: People, recorded: Recorded) -> Iterable[Key]:
    """A quota was changed."""
    return records.quota_set(state, recorded.event)


def pool_bound(state: People, recorded: Recorded) -> Iterable[Key]:
    """The workspaces that may use a pool were changed."""
    return pool_bindings.pool_bound(state, recorded.event)
