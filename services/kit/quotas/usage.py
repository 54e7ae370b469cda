"""Usage of resources limited by quotas, summed by owner and by place."""

from __future__ import annotations

from collections.abc import Hashable, ItemsView
from typing import Any, TypeVar

import msgspec

from services.kit.overlay import Layer

K = TypeVar("K", bound=Hashable)


class Account(msgspec.Struct, frozen=True, order=True):
    """Who uses something and where. Which quotas apply is determined on lookup."""

    owner: str
    """The username under which it was created."""
    place: int
    """The project; for a task, which has none, the negated workspace id."""


class Usage:
    """Sums over amounts, each under its own id. Putting an id again replaces its amount."""

    def __init__(self) -> None:
        self._amounts: dict[Any, tuple[Account, int]] = {}
        self.by_owner: dict[str, int] = {}
        """Without owners that use nothing."""
        self.by_place: dict[int, int] = {}
        """Likewise."""

    def set(self, id: Hashable, account: Account, amount: int) -> None:
        """Set the amount of an id on this account."""
        if self._amounts.get(id) != (account, amount):
            self.remove(id)
            self._amounts[id] = account, amount
            self._add(account, amount)

    def add(self, id: Hashable, account: Account, change: int) -> None:
        """Change the amount of an id by `change`."""
        amount = self.amount(id) + change
        if amount:
            self.set(id, account, amount)
        else:
            self.remove(id)

    def remove(self, id: Hashable) -> None:
        """Remove an id; an unknown one is ignored."""
        account, amount = self._amounts.pop(id, (None, 0))
        if account is not None:
            self._add(account, -amount)

    def amount(self, id: Hashable) -> int:
        """Return the amount of an id."""
        return self._amounts[id][1] if id in self._amounts else 0

    def items(self) -> ItemsView[Any, tuple[Account, int]]:
        """Return account and amount by id."""
        return self._amounts.items()

    def _add(self, account: Account, amount: int) -> None:
        _change(self.by_owner, account.owner, amount)
        _change(self.by_place, account.place, amount)

    def layer(self) -> Usage:
        """Return a mutable view that leaves these sums unchanged."""
        view = Usage()
        view._amounts = Layer(self._amounts)  # type: ignore[assignment]
        view.by_owner = Layer(self.by_owner)  # type: ignore[assignment]
        view.by_place = Layer(self.by_place)  # type: ignore[assignment]
        return view


def _change(sums: dict[K, int], key: K, amount: int) -> None:
    # Sums without anything are dropped, as the list of all of them is walked for each look-up of a group's
    # use.
    total = sums.get(key, 0) + amount
    if total:
        sums[key] = total
    else:
        sums.pop(key, None)
