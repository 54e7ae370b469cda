"""Prolongs sessions that are used, beside the requests that use them."""

from __future__ import annotations

import asyncio

from det_contracts.commands import RenewSession
from det_contracts.problems import Refused
from services.catalogue.peers import Peers


class Renewals:
    """Asks once for each session, however many requests come with it meanwhile."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, session_id: str, until: float) -> None:
        """Have a session last until then; nobody waits for it."""
        if session_id not in self._tasks:
            self._tasks[session_id] = asyncio.create_task(self._renew(session_id, until))

    async def _renew(self, session_id: str, until: float) -> None:
        try:
            await self._peers.command(RenewSession(session_id=session_id, until=until))
        except Refused:
            # The next request with it asks again.
            pass
        finally:
            self._tasks.pop(session_id, None)

    async def close(self) -> None:
        """Ask no more."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
