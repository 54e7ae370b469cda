"""Limits the total size of what the gateway keeps in memory for slow clients.

An answer is produced at once and read later, so a client that asks and does not read makes the gateway buffer
its data. In the same way, a client that sends a body and does not finish it makes the gateway keep what has
arrived. A client that makes progress is left alone, as long as there is room for such clients.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

UNREAD_BYTES = 256 << 20
"""Maximum for all answers together. A single answer is limited by the broker to a few MiB."""
BODY_BYTES = 256 << 20
"""Maximum for all request bodies in memory together."""


class Client(Protocol):
    """A client with unread data."""

    @property
    def address(self) -> str:
        """The client's address; clients of one address are weighed together."""

    def unread_bytes(self) -> int:
        """Number of bytes waiting for the client."""

    def disconnect(self) -> None:
        """Close the connection at once, whatever is left to send."""


class UnreadData:
    """Tracks what is kept for clients, and drops clients when it is too much."""

    def __init__(self, most: int = UNREAD_BYTES) -> None:
        """`most` is the limit in bytes. The only client of an address may exceed it."""
        self._most = most
        self._left: dict[Client, int] = {}
        """Unread bytes per client, those that recently made progress last."""
        self.total = 0
        """Total of the bytes last seen."""

    def waits(self, client: Client) -> None:
        """Note that a client has more data than it currently accepts. May drop other clients."""
        self._set_left(client, client.unread_bytes())
        if self.total > self._most:
            self._refresh()
            self._make_room()

    def forget(self, client: Client) -> None:
        """Note that a client has read its data or is gone."""
        self.total -= self._left.pop(client, 0)

    def _set_left(self, client: Client, left: int) -> None:
        self.total += left - self._left.get(client, 0)
        # A known client keeps its place; only `forget` and a new entry move it to the end.
        self._left[client] = left

    def _refresh(self) -> None:
        for client, before in list(self._left.items()):
            if (now := client.unread_bytes()) < before:
                self.forget(client)
                self._set_left(client, now)

    def _make_room(self) -> None:
        """Drop clients of the address with the most data, those without progress for longest first."""
        sizes: Counter[str] = Counter()
        clients: dict[str, list[Client]] = {}
        for client, left in reversed(self._left.items()):
            sizes[client.address] += left
            clients.setdefault(client.address, []).append(client)
        while self.total > self._most:
            crowded_addresses = [address for address, ones in clients.items() if len(ones) > 1]
            if not crowded_addresses:
                return
            address = max(crowded_addresses, key=sizes.__getitem__)
            # The list was filled from the end, so the last is the one without progress for longest.
            idle = clients[address].pop()
            sizes[address] -= self._left[idle]
            self.forget(idle)
            idle.disconnect()
