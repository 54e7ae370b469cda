"""Users (REST spec, section 2): the two built-in ones and those created later."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from det_contracts.events.gateway import AgentUser, UserSet
from det_contracts.problems import not_found
from services.people.domain.accounts import BUILT_IN
from services.people.domain.state import People, User


def all_users(state: People) -> list[User]:
    """All users, by id."""
    return [user for _, user in sorted({**BUILT_IN, **state.users}.items())]


def administrators(state: People) -> Iterable[int]:
    """The ids of all active administrators, who may make others administrators."""
    first = (id for id, user in BUILT_IN.items() if user.admin and id not in state.users)
    return chain(first, (id for (id,) in state.administrators.scan()))


def by_id(state: People, id: int) -> User:
    """The user with this id. Raises `Refused` (not found)."""
    user = state.users.get(id) or BUILT_IN.get(id)
    if user is None:
        raise not_found("user", id)
    return user


def name_of(state: People, id: int) -> str | None:
    """The name of the user with this id; None if there is no such user."""
    user = state.users.get(id) or BUILT_IN.get(id)
    return user.username if user is not None else None


def by_any_name(state: People, name: str) -> User | None:
    """The user who has or had this name."""
    id = state.user_names.get(name)
    if id is not None:
        return state.users[id]
    return next(
        (user for user in BUILT_IN.values() if user.username == name and user.id not in state.users), None
    )


def next_id(state: People) -> int:
    """The id for the next new user."""
    highest = state.highest.get("users")
    return max(highest.id if highest is not None else 0, *BUILT_IN) + 1


def by_name(state: People, name: str) -> User:
    """The user with this current name. Raises `Refused` (not found)."""
    user = by_any_name(state, name)
    if user is None or user.username != name:
        raise not_found("user", name)
    return user


def id_by_name(state: People, name: str) -> int:
    """The id of the user who has or had this name, or 0."""
    user = by_any_name(state, name)
    return user.id if user is not None else 0


def agent_user_of(state: People, name: str) -> AgentUser | None:
    """The account that a user's tasks run as on worker hosts, if one is set."""
    user = by_any_name(state, name)
    return user.agent_user if user is not None else None


def active_user(state: People, name: str) -> User | None:
    """The user who has or had this name, if active."""
    user = by_any_name(state, name)
    return user if user is not None and user.active else None


def names_of(state: People, names: Iterable[str], ids: Iterable[int]) -> list[str]:
    """Every current and former name of these users. Unknown users are kept as names that match nothing."""
    users_by_id = {user.id: user for user in all_users(state)}
    all_names: list[str] = []
    for name in names:
        user = by_any_name(state, name)
        all_names += [user.username, *user.former] if user is not None else [name]
    for id in ids:
        all_names += [users_by_id[id].username, *users_by_id[id].former] if id in users_by_id else [f"#{id}"]
    return all_names


def user_set_event(user: User, reason: str) -> UserSet:
    """Convert a user to the event that describes them."""
    return UserSet(
        user_id=user.id,
        username=user.username,
        former=user.former,
        admin=user.admin,
        active=user.active,
        remote=user.remote,
        display_name=user.display_name,
        agent_user=user.agent_user,
        reason=reason,
    )


def users_without_password(state: People) -> list[User]:
    """Built-in users who can log in without a password."""
    first = [by_id(state, id) for id in BUILT_IN]
    return [user for user in first if user.active and not user.remote and not user.password.hashed]
