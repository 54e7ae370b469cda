"""Sign-in through a provider: with a linked account, a new account, or refused."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.commands import SignIn
from det_contracts.events.gateway import GroupSet, SignedIn, UserSet
from det_contracts.problems import Refused, failed_precondition
from services.kit.authz.access_check import forbidden
from services.kit.names import identity_problem, latin_look
from services.kit.rules import Call, Result
from services.people import users, workspace_records
from services.people.commands.groups import MAX_MEMBERS
from services.people.commands.users import MAX_NAME_CHARACTERS, require_an_administrator
from services.people.domain.accounts import BUILT_IN
from services.people.domain.state import People, User

BUILT_IN_NAMES = {user.username for user in BUILT_IN.values()}


def sign_in(state: People, command: SignIn, call: Call) -> Result:
    """Find the user's account, by their id at the provider or, the first time, by their name."""
    reason = f"signed in with {command.issuer}"
    # The permanent id first: at many providers people choose their names, and a name must not lead to
    # another's account (decision 40).
    id = state.subjects.get((command.issuer, command.subject))
    user = users.by_id(state, id) if id is not None else _by_name(state, command)
    if user is None:
        before = UserSet(user_id=users.next_id(state), username="", reason=reason)
        wanted = _new_account(command, before)
    else:
        wanted = before = users.user_set_event(user, reason)
    if not wanted.active:
        raise forbidden("user is not active")
    wanted = _with_rights(state, command, wanted)
    signed_in = SignedIn(
        user_id=wanted.user_id,
        issuer=command.issuer,
        subject=command.subject,
        username=command.username[:MAX_NAME_CHARACTERS],
        groups=command.groups,
        reason=reason,
    )
    described = [wanted] if wanted != before else []
    return Result([*described, signed_in, *_memberships(state, command, wanted)], wanted.user_id)


def _memberships(state: People, command: SignIn, user: UserSet) -> Iterable[GroupSet]:
    """The managed groups with this user added or removed. Missing groups are created."""
    fresh = workspace_records.next_id(state, "groups")
    for name in command.managed:
        id = state.group_names.get(name.lower())
        before = state.groups[id].members if id is not None else ()
        is_member = name in command.member_of
        if is_member == (user.user_id in before):
            continue
        members = {*before, user.user_id} if is_member else {*before} - {user.user_id}
        if len(members) > MAX_MEMBERS:
            raise failed_precondition(f"group '{name}' has {MAX_MEMBERS} members, and cannot have more")
        group_name = state.groups[id].name if id is not None else name
        yield GroupSet(
            group_id=fresh if id is None else id,
            name=group_name,
            members=tuple(sorted(members)),
            reason=f"user '{user.username}' {user.reason}",
        )
        # Several groups may be created in one command, before the state knows of the first.
        fresh += id is None


def _by_name(state: People, command: SignIn) -> User | None:
    """An account awaiting a sign-in under this name. None if no user has the name."""
    name = command.username
    user = users.by_any_name(state, name)
    if user is None:
        return None
    if user.id in state.identities:
        raise forbidden(
            f"user '{name}' is linked with another account at the provider. An administrator can undo that: "
            f"det user unlink-from-provider {name}, and then det user link-with-provider {name}"
        )
    # Also for a former name: names never pass to another person, and this one may belong to the account's
    # owner.
    if not user.remote or user.username != name:
        raise forbidden(
            f"there is a user '{name}' who logs in with a password, or had that name. If that is you, an "
            f"administrator can let you sign in this way: det user link-with-provider {user.username}"
        )
    return user


def _new_account(command: SignIn, before: UserSet) -> UserSet:
    name = command.username
    if not command.provision:
        raise forbidden(f"there is no user '{name}' here: det user create {name} --remote")
    problem = identity_problem(name, MAX_NAME_CHARACTERS)
    if not problem and latin_look(name.casefold()) in BUILT_IN_NAMES:
        problem = "it would be taken for a user that the cluster itself has"
    if problem:
        shown = f"{name[:MAX_NAME_CHARACTERS]!r}, as the provider calls you,"
        raise forbidden(f"{shown} cannot be the name of a user here: {problem}")
    return msgspec.structs.replace(before, username=name, remote=True, display_name=command.display_name)


def _with_rights(state: People, command: SignIn, before: UserSet) -> UserSet:
    if command.admin is None or command.admin == before.admin:
        return before
    wanted = msgspec.structs.replace(before, admin=command.admin)
    try:
        require_an_administrator(state, before, wanted)
    except Refused:
        # The provider would remove the last administrator, so they keep that right and are not locked out.
        return before
    return wanted
