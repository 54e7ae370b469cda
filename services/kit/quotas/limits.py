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
    return tuple(one for one in holders if limit_of(state, one, what) is not None)


def limit_of(state: People, name: str, what: What) -> int | None:
    """Return a holder's limit; None for no limit."""
    quota = state.quotas.get(name)
    found: int | None = getattr(quota, what) if quota is not None else None
    return found


def all_limits(state: People, what: What) -> dict[str, int]:
    """Return the limits of all holders that have one."""
    limits = ((name, limit_of(state, name, what)) for name in state.quotas)
    return {name: limit for name, limit in limits if limit is not None}


def usage_of(state: People, usage: Usage, holders: Iterable[str] | None = None) -> dict[str, int]:
    """Return the usage of some holders, or of all that have a quota.

    Iterates over all owners and projects with usage.
    """
    found = dict.fromkeys(state.quotas if holders is None else holders, 0)
    if found:
        for owner, amount in usage.by_owner.items():
            for one in _holders_of_owner(state, owner):
                if one in found:
                    found[one] += amount
        for place, amount in usage.by_place.items():
            one = _holder_of_place(state, place)
            if one in found:
                found[one] += amount
    return found


def find_exceeded(
    state: People, usage: Usage, account: Account, what: What, more: int
) -> tuple[str, int, int] | None:
    """Return the first holder that would exceed its limit, with its usage and its limit."""
    holders = limiting_holders(state, account, what)
    had = usage_of(state, usage, holders)
    for one in holders:
        limit = limit_of(state, one, what) or 0
        if had[one] + more > limit:
            return one, had[one], limit
    return None


def check_jobs(state: People, usage: Usage, account: Account) -> None:
    """Raise `Refused` (403) if one more job would exceed a quota.

    Not 429, because clients retry that automatically, and a quota does not free up at any known time.
    """
    found = find_exceeded(state, usage, account, "jobs", 1)
    if found is not None:
        one, had, limit = found
        raise Refused(
            Problem(
                "permission_denied",
                f"{describe_holder(state, one)} has {had} of the {limit} jobs (experiments and tasks that "
                "have not ended) that its quota allows: wait until one of them ends, end one, or ask an "
                "administrator for more. 'det quota list' shows the quotas",
            )
        )


def workspace_name(state: People, workspace_id: int) -> str:
    """Return the name of a workspace, or its id if the name is unknown."""
    known = state.workspaces_called.get(workspace_id)
    return known.name if known is not None else FIRST_WORKSPACE if workspace_id == 1 else str(workspace_id)


def describe_holder(state: People, name: str) -> str:
    """Describe a holder, such as "workspace 'nlp'"."""
    kind, _, text = name.partition("-")
    id, found = int(text), ""
    if kind == "user":
        builtin = {one.id: one.username for one in BUILT_IN.values()}
        found = state.people[id].username if id in state.people else builtin.get(id, "")
    elif kind == "group" and id in state.groups:
        found = state.groups[id].name
    elif kind == "workspace":
        known = state.workspaces_called.get(id)
        found = known.name if known is not None else FIRST_WORKSPACE if id == 1 else ""
    return f"{kind} '{found}'" if found else f"{kind} {id}"
