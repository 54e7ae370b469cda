"""Which quotas limit an account, how much of them is used, and the messages about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from det_contracts.problems import Problem, Refused
from services.kit.authz.people import BUILT_IN, Home, People, workspace_of
from services.kit.authz.roles import groups_of, holder
from services.kit.quotas.usage import Account, Usage

What = Literal["slots", "jobs", "storage_bytes"]
NO_ACCOUNT = Account("", 0)
"""The account of something unknown. No quota limits it."""
FIRST_WORKSPACE = "Uncategorized"


def account_of(state: People, id: int) -> Account:
    """Return the account of an experiment, or of a task given by its negative number."""
    home = state.homes.get(id)
    return account_at(home) if home is not None else NO_ACCOUNT


def account_at(home: Home) -> Account:
    """Return the account that belongs to a home."""
    return Account(home.owner, -home.workspace_id if home.workspace_id else home.project_id)


def user_id(state: People, name: str) -> int:
    """Return the id of the user who has or had the name; 0 if there is none."""
    named = state.people_names.get(name)
    if named is not None:
        return named.user_id
    return BUILT_IN[name].id if name in BUILT_IN else 0


def _holders_of_owner(state: People, owner: str) -> Iterator[str]:
    id = user_id(state, owner)
    yield holder("user", id)
    yield from (holder("group", group) for group in groups_of(state, id))


def _holder_of_place(state: People, place: int) -> str:
    return f"workspace-{-place if place < 0 else workspace_of(state, place)}"


def limiting_holders(state: People, account: Account, what: What) -> tuple[str, ...]:
    """Return the quota holders that limit the account."""
    if not state.quotas:
        return ()
    holders = (*_holders_of_owner(state, account.owner), _holder_of_place(state, account.place))
    return tuple(name for name in holders if limit_of(state, name, what) is not None)


def limit_of(state: People, name: str, what: What) -> int | None:
    """Return a holder's limit; None for no limit."""
    quota = state.quotas.get(name)
    limit: int | None = getattr(quota, what) if quota is not None else None
    return limit


def all_limits(state: People, what: What) -> dict[str, int]:
    """Return the limits of all holders that have one."""
    limits = ((name, limit_of(state, name, what)) for name in state.quotas)
    return {name: limit for name, limit in limits if limit is not None}


def usage_of(state: People, usage: Usage, holders: Iterable[str] | None = None) -> dict[str, int]:
    """Return the usage of some holders, or of all that have a quota.

    Iterates over all owners and projects with usage.
    """
    by_holder = dict.fromkeys(state.quotas if holders is None else holders, 0)
    if by_holder:
        for owner, amount in usage.by_owner.items():
            for name in _holders_of_owner(state, owner):
                if name in by_holder:
                    by_holder[name] += amount
        for place, amount in usage.by_place.items():
            name = _holder_of_place(state, place)
            if name in by_holder:
                by_holder[name] += amount
    return by_holder


def find_exceeded(
    state: People, usage: Usage, account: Account, what: What, more: int
) -> tuple[str, int, int] | None:
    """Return the first holder that would exceed its limit, with its usage and its limit."""
    holders = limiting_holders(state, account, what)
    had = usage_of(state, usage, holders)
    for name in holders:
        limit = limit_of(state, name, what) or 0
        if had[name] + more > limit:
            return name, had[name], limit
    return None


def check_jobs(state: People, usage: Usage, account: Account) -> None:
    """Raise `Refused` (403) if one more job would exceed a quota.

    Not 429, because clients retry that automatically, and a quota does not free up at any known time.
    """
    exceeded = find_exceeded(state, usage, account, "jobs", 1)
    if exceeded is not None:
        name, had, limit = exceeded
        raise Refused(
            Problem(
                "permission_denied",
                f"{describe_holder(state, name)} has {had} of the {limit} jobs (experiments and tasks that "
                "have not ended) that its quota allows: wait until one of them ends, end one, or ask an "
                "administrator for more. 'det quota list' shows the quotas",
            )
        )


def workspace_name(state: People, workspace_id: int) -> str:
    """Return the name of a workspace, or its id if the name is unknown."""
    called = state.workspaces_called.get(workspace_id)
    return called.name if called is not None else FIRST_WORKSPACE if workspace_id == 1 else str(workspace_id)


def describe_holder(state: People, name: str) -> str:
    """Describe a holder, such as "workspace 'nlp'"."""
    kind, _, text = name.partition("-")
    id, display_name = int(text), ""
    if kind == "user":
        builtin = {person.id: person.username for person in BUILT_IN.values()}
        display_name = state.people[id].username if id in state.people else builtin.get(id, "")
    elif kind == "group" and id in state.groups:
        display_name = state.groups[id].name
    elif kind == "workspace":
        called = state.workspaces_called.get(id)
        display_name = called.name if called is not None else FIRST_WORKSPACE if id == 1 else ""
    return f"{kind} '{display_name}'" if display_name else f"{kind} {id}"
