"""What is had of something that quotas limit, added up by whose it is and by where it is filed."""

from __future__ import annotations

from collections.abc import Hashable, ItemsView
from typing import Any, TypeVar

import msgspec

from services.kit.overlay import Layer

K = TypeVar("K", bound=Hashable)


class Account(msgspec.Struct, frozen=True, order=True):
    """On whose account something is had. Which quotas limit that is worked out when it is asked."""

    owner: str
    """The name under which it was made."""
    place: int
    """The project; of a task, which is in none, its workspace below 0."""


class Usage:
    """Sums of what was put, each under an id of its own; what is put again takes the place of the first."""

    def __init__(self) -> None:
        self._put: dict[Any, tuple[Account, int]] = {}
        self.by_owner: dict[str, int] = {}
        """Without those that have nothing."""
        self.by_place: dict[int, int] = {}
        """Likewise."""

    def put(self, id: Hashable, account: Account, amount: int) -> None:
        """So much is had now, on this account."""
        if self._put.get(id) != (account, amount):
            self.drop(id)
            self._put[id] = account, amount
            self._add(account, amount)

    def add(self, id: Hashable, account: Account, change: int) -> None:
        """So much more is had, or less."""
        amount = self.amount(id) + change
        if amount:
            self.put(id, account, amount)
        else:
            self.drop(id)

    def drop(self, id: Hashable) -> None:
        """Nothing is had any more; an id that is not known is nothing."""
        account, amount = self._put.pop(id, (None, 0))
        if account is not None:
            self._add(account, -amount)

    def amount(self, id: Hashable) -> int:
        """What is had under an id."""
        return self._put[id][1] if id in self._put else 0

    def items(self) -> ItemsView[Any, tuple[Account, int]]:
        """What was put, by id."""
        return self._put.items()

    def _add(self, account: Account, amount: int) -> None:
        _change(self.by_owner, account.owner, amount)
        _change(self.by_place, account.place, amount)

    def layer(self) -> Usage:
        """A view that can be changed while these sums stay as they are."""
        view = Usage()
        view._put = Layer(self._put)  # type: ignore[assignment]
        view.by_owner = Layer(self.by_owner)  # type: ignore[assignment]
        view.by_place = Layer(self.by_place)  # type: ignore[assignment]
        return view


def _change(sums: dict[K, int], key: K, amount: int) -> None:
    total = sums.get(key, 0) + amount
    if total:
        sums[key] = total
    else:
        sums.pop(key, None)
