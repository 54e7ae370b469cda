"""What clients have not taken of their answers: all of it together has a bound.

An answer is made at once and taken by its client later, so whoever asks and does not read makes the gateway
keep what was asked for. One that goes on is left alone, as long as there is room for those who do.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

UNREAD_BYTES = 256 << 20
"""Of all answers together. One answer is at most what the broker carries, a few MiB."""


class Client(Protocol):
    """Who has not taken all that there is for them."""

    @property
    def address(self) -> str:
        """Where from; those of one address are weighed together."""

    def left(self) -> int:
        """Bytes that wait for it."""

    def give_up(self) -> None:
        """Close the connection now, whatever is left."""


class Unread:
    """All that waits for clients, and who is given up where it becomes too much."""

    def __init__(self, most: int = UNREAD_BYTES) -> None:
        """`most` bytes are kept; a single client of an address may have more, as long as it is alone."""
        self._most = most
        self._left: dict[Client, int] = {}
        """Those who took something lately come last."""
        self.total = 0
        """Bytes, as far as was looked."""

    def waits(self, client: Client) -> None:
        """There is more for a client than it takes for now; others may be given up for it."""
        self._keep(client, client.left())
        if self.total > self._most:
            self._look()
            self._make_room()

    def goes_on(self, client: Client) -> None:
        """It has taken what there was, or is gone."""
        self.total -= self._left.pop(client, 0)

    def _keep(self, client: Client, left: int) -> None:
        self.total += left - self._left.get(client, 0)
        self._left[client] = left

    def _look(self) -> None:
        for client, before in list(self._left.items()):
            if (now := client.left()) < before:
                self.goes_on(client)
                self._keep(client, now)

    def _make_room(self) -> None:
        """Who took nothing for longest goes first, of the address that has the most."""
        sizes: Counter[str] = Counter()
        clients: dict[str, list[Client]] = {}
        for client, left in reversed(self._left.items()):
            sizes[client.address] += left
            clients.setdefault(client.address, []).append(client)
        while self.total > self._most:
            of_several = [address for address, ones in clients.items() if len(ones) > 1]
            if not of_several:
                return
            address = max(of_several, key=sizes.__getitem__)
            idle = clients[address].pop()
            sizes[address] -= self._left[idle]
            self.goes_on(idle)
            idle.give_up()
