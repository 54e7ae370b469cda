"""Commands about user groups: creating, renaming, changing members, and removing with their roles."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.commands import RemoveGroup, SetGroup
from det_contracts.events.gateway import GroupRemoved, GroupSet, RolesSet
from det_contracts.problems import Problem, Refused, invalid
from services.kit.authz.roles import grants_held_by, holder
from services.kit.names import check_name, identity_problem
from services.kit.rules import Call, Result
from services.people import groups, users, workspace_records
from services.people.commands.quotas import remove_quota
from services.people.domain.state import People

MAX_NAME_CHARACTERS = 128
MAX_MEMBERS = 10_000


def set_group(state: People, command: SetGroup, call: Call) -> Result:
    """Create a group, or change the given fields of one. Has no effect if nothing changes."""
    if command.group_id is None:
        id = workspace_records.next_id(state, "groups")
        before = GroupSet(group_id=id, name="", members=(), reason=f"made by {command.user}")
    else:
        id, group = command.group_id, groups.by_id(state, command.group_id)
        reason = f"changed by {command.user}"
        before = GroupSet(group_id=id, name=group.name, members=group.members, reason=reason)
    name = before.name if command.name is msgspec.UNSET else command.name
    if name != before.name or command.group_id is None:
        _check_name(state, id, name)
    members = _members(state, before, command)
    wanted = msgspec.structs.replace(before, name=name, members=members)
    return Result([wanted] if wanted != before else [], id)


def _members(state: People, before: GroupSet, command: SetGroup) -> tuple[int, ...]:
    for user_id in command.add:
        users.by_id(state, user_id)
    members = ({*before.members} | {*command.add}) - {*command.remove}
    if len(members) > MAX_MEMBERS:
        raise invalid(f"a group may have at most {MAX_MEMBERS} members, not {len(members)}")
    return tuple(sorted(members))


def _check_name(state: People, id: int, name: str) -> None:
    check_name("a group", name, MAX_NAME_CHARACTERS, identity_problem)
    if state.group_names.get(name.lower(), id) != id:
        raise Refused(Problem("already_exists", f"a group named '{name}' exists already"))


def remove_group(state: People, command: RemoveGroup, call: Call) -> Result:
    """Remove a group. Its members lose the rights they had through it."""
    groups.by_id(state, command.group_id)
    reason, name = f"removed by {command.user}", holder("group", command.group_id)
    # Before the group: its id is never given again, but its roles would stay in the state for ever.
    removals: list[Any] = [RolesSet(name, (), reason)] if grants_held_by(state, name) else []
    removals += remove_quota(state, name, reason)
    return Result([*removals, GroupRemoved(command.group_id, reason)])
