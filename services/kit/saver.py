"""Where a runner keeps what it has folded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import sqlalchemy as sa

from det_contracts.envelope import Recorded
from services.kit.rebuild_requests import RebuildRequests
from services.kit.rules import Key


class Saver(Protocol):
    """Stores what a runner has folded."""

    rebuilds: RebuildRequests

    async def load(self) -> tuple[Any, dict[str, int]]:
        """Return the newest saved state and its position in each stream."""

    async def changed(
        self,
        state: Any,
        keys: Collection[Key],
        events: Sequence[Recorded],
        positions: dict[str, int],
        size: int = 0,
    ) -> None:
        """Accept the changes of one folded batch. Waits while too much is unsaved.

        `size` is that of the messages that the events were read from, in bytes.
        """

    async def run(self) -> None:
        """Save in the background until cancelled.

        Raises `StartAgain`, and `PortionFailed` if something that was folded cannot be saved.
        """

    async def save_all(self) -> bool:
        """Have everything folded by now saved at once, and wait for it.

        Returns whether anything had to be saved before more may be folded.
        """


class Projection(Protocol):
    """Writes a service's read model in the transaction that saves the snapshot."""

    def __call__(
        self, connection: sa.Connection, records: Mapping[Key, Any], events: Sequence[Recorded]
    ) -> None: ...


class NullSaver:
    """Stores nothing. For tests and simulations, where the log is the only storage."""

    def __init__(self, state: type[Any]) -> None:
        self._state = state
        self.rebuilds = RebuildRequests()

    async def load(self) -> tuple[Any, dict[str, int]]:
        return self._state(), {}

    async def changed(
        self,
        state: Any,
        keys: Collection[Key],
        events: Sequence[Recorded],
        positions: dict[str, int],
        size: int = 0,
    ) -> None:
        return None

    async def run(self) -> None:
        return None

    async def save_all(self) -> bool:
        return False
