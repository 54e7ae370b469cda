"""Extends sessions that are in use, in the background of the requests that use them."""

from __future__ import annotations

import asyncio

from det_contracts.commands import RenewSession
from det_contracts.problems import Refused
from services.catalogue.peers import Peers
from services.kit.cancellation import cancel_and_wait


class Renewals:
    """Sends one renewal per session at a time, however many requests use the session meanwhile."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, session_id: str, until: float) -> None:
        """Start extending a session until `until`, without waiting for the result."""
        if session_id not in self._tasks:
            self._tasks[session_id] = asyncio.create_task(self._renew(session_id, until))

    async def _renew(self, session_id: str, until: float) -> None:
        try:
            await self._peers.command(RenewSession(session_id=session_id, until=until))
        except Refused:
            # The next request of this session retries.
            pass
        finally:
            self._tasks.pop(session_id, None)

    async def close(self) -> None:
        """Cancel pending renewals."""
        await cancel_and_wait(*self._tasks.values())
