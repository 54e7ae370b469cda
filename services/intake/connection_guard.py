"""Ends connections of scripts and workers that have taken most of the places at a broker.

A broker limits how many connections all scripts have together, and cannot limit those of one. One script that
takes all of them keeps the others out, whose training goes on, and whose reports wait. So while scripts and
workers have many, each gets a fair share: the newest connections of those who have most are ended, until
there are places for everybody. A client whose connection was ended connects again by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import structlog
from nats.aio.client import Client
from nats.errors import Error as NatsError

from services.kit.nats_client import claims_in, claims_of

EVERY_S, CROWDED_EVERY_S = 5.0, 1.0
FACTS_S, PAGE_S = 1.0, 20.0
"""How long all brokers may take to say how many connections they have, and one to list them: while somebody
connects all the time, it has little time for anything else."""
CROWDED_PART = 0.375
"""Part of a broker's connections from which on it is looked at who has them. Scripts may have half of all."""
SHARED_PART = 0.25
"""Part of them that scripts and workers share while there are so many."""
MIN_EACH = 64
"""Connections that everybody may have. A trial needs one for each of its processes, a worker two or three."""
PAGE = 4096
"""Connections that are listed at once. Each is a kilobyte of a message, which has a limit, and all are sorted
for each page."""

log = structlog.get_logger()


class _Facts(msgspec.Struct, frozen=True):
    """What a broker says of itself."""

    server_id: str
    connections: int
    max_connections: int


class _Connection(msgspec.Struct, frozen=True):
    """A client's connection."""

    cid: int
    jwt: str = ""


class _Page(msgspec.Struct, frozen=True):
    """Some of a broker's connections."""

    total: int = 0
    connections: tuple[_Connection, ...] = ()


class _FactsAnswer(msgspec.Struct, frozen=True):
    data: _Facts


class _PageAnswer(msgspec.Struct, frozen=True):
    data: _Page


def beyond_share(held: Mapping[str, Sequence[int]], places: int) -> dict[str, list[int]]:
    """Return by holder the connections beyond an equal share of these places, the newest ones.

    Example:
        ```python
        beyond_share({"scripts 1": range(100), "scripts 2": [100, 101]}, 80)  # the last 22 of "scripts 1"
        ```
    """
    share, left = places, places
    for others, count in enumerate(sorted(map(len, held.values()))):
        share = left // (len(held) - others)
        if count > share:
            break
        left -= count
    else:
        return {}
    each = max(share, MIN_EACH)
    return {holder: sorted(ids)[each:] for holder, ids in held.items() if len(ids) > each}


def _account(claims: Mapping[str, Any]) -> str:
    stated = claims.get("nats")
    return str(stated.get("issuer_account", "")) if isinstance(stated, dict) else ""


class ConnectionGuard:
    """Watches the connections to all brokers while this replica leads."""

    def __init__(self, connection: Client, is_leader: Callable[[], bool]) -> None:
        self._connection = connection
        self._is_leader = is_leader
        credentials = getattr(connection, "credentials", "")
        own = claims_in(Path(credentials).read_text()) if credentials else {}
        self._own_account = _account(own)
        """That of services, whose connections are not looked at."""

    async def run(self) -> None:
        """Look every few seconds until cancelled."""
        pause_s = EVERY_S
        while True:
            await asyncio.sleep(pause_s)
            pause_s = EVERY_S
            if self._is_leader():
                try:
                    pause_s = CROWDED_EVERY_S if await self.look() else EVERY_S
                # A broker is away, or is still configured by an earlier release.
                except (NatsError, OSError, TimeoutError, msgspec.MsgspecError) as error:
                    log.warning("broker.connections_not_listed", error=repr(error))

    async def look(self) -> bool:
        """End what is beyond the shares, at each broker that is crowded; return whether one was."""
        crowded = [
            broker
            for broker in await self._brokers()
            if broker.connections >= CROWDED_PART * broker.max_connections
        ]
        for broker in crowded:
            ended = beyond_share(await self._held(broker), int(SHARED_PART * broker.max_connections))
            for holder, ids in ended.items():
                log.warning("broker.connections_ended", of=holder, number=len(ids))
                for cid in ids:
                    await self._kick(broker, cid)
        return bool(crowded)

    async def _brokers(self) -> list[_Facts]:
        inbox, brokers = self._connection.new_inbox(), list[_Facts]()
        answers = await self._connection.subscribe(inbox)
        try:
            await self._connection.publish("broker.facts", reply=inbox)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FACTS_S):
                    async for answer in answers.messages:
                        brokers.append(msgspec.json.decode(answer.data, type=_FactsAnswer).data)
        finally:
            await answers.unsubscribe()
        return brokers

    async def _held(self, broker: _Facts) -> Mapping[str, list[int]]:
        """The connections of scripts and workers, by account and name."""
        held, offset, total = defaultdict[str, list[int]](list), 0, 1
        while offset < total:
            wanted = msgspec.json.encode({"auth": True, "limit": PAGE, "offset": offset})
            subject = f"broker.connections.{broker.server_id}"
            answer = await self._connection.request(subject, wanted, timeout=PAGE_S)
            page = msgspec.json.decode(answer.data, type=_PageAnswer).data
            for listed in page.connections:
                claims = claims_of(listed.jwt)
                if _account(claims) not in ("", self._own_account):
                    held[f"{_account(claims)} {claims.get('name', '')}"].append(listed.cid)
            offset, total = offset + PAGE, page.total
        return held

    async def _kick(self, broker: _Facts, cid: int) -> None:
        # Without a reply subject a broker does nothing. Nobody listens there: one that has ended since is no
        # fault.
        wanted, reply = msgspec.json.encode({"cid": cid}), self._connection.new_inbox()
        await self._connection.publish(f"broker.kick.{broker.server_id}", wanted, reply=reply)
