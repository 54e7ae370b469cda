"""Groups, roles, quotas and bindings of pools, with the indexes that commands and pages look them up by."""

from __future__ import annotations

from collections.abc import Iterable

from det_contracts.envelope import Recorded
from det_contracts.events import gateway
from services.kit import pool_bindings
from services.kit.authz import roles
from services.kit.quotas import records
from services.kit.rules import Key
from services.people.domain.keeping import given
from services.people.domain.state import People


def group_set(state: People, recorded: Recorded) -> Iterable[Key]:
    """A group is there, or has another name or other members."""
    event: gateway.GroupSet = recorded.event
    _unname(state, event.group_id)
    state.group_names[event.name.lower()] = event.group_id
    yield from roles.group_set(state, event, recorded.at)
    yield from given(state, "groups", event.group_id)


def group_removed(state: People, recorded: Recorded) -> Iterable[Key]:
    """A group is gone."""
    event: gateway.GroupRemoved = recorded.event
    _unname(state, event.group_id)
    yield from roles.group_removed(state, event)


def _unname(state: People, id: int) -> None:
    known = state.groups.get(id)
    if known is not None and state.group_names.get(known.name.lower()) == id:
        del state.group_names[known.name.lower()]


def roles_set(state: People, recorded: Recorded) -> Iterable[Key]:
    """Somebody holds other roles."""
    event: gateway.RolesSet = recorded.event
    before = {one.workspace_id for one in roles.held(state, event.holder)}
    after = {one.workspace_id for one in event.grants}
    for id in before - after:
        state.granted_in.discard(id, event.holder)
    for id in after - before:
        state.granted_in.add(id, event.holder)
    return roles.roles_set(state, event)


def authz_set(state: People, recorded: Recorded) -> Iterable[Key]:
    """Rights are judged otherwise."""
    return roles.authz_set(state, recorded.event)


def quota_set(state: People, recorded: Recorded) -> Iterable[Key]:
    """Somebody may have more or less."""
    return records.quota_set(state, recorded.event)


def pool_bound(state: People, recorded: Recorded) -> Iterable[Key]:
    """Other workspaces may use a pool."""
    return pool_bindings.pool_bound(state, recorded.event)
