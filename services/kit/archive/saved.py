"""How far the databases of all services are saved: checked before anything is removed from the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg

from det_contracts import subjects

WITHIN_S = 2.0
"""Seconds that all replicas have to answer."""


class Saved(msgspec.Struct, frozen=True):
    """The answer of one process."""

    position: int
    """Position up to which CONTROL is in its database."""


async def tell_saved(connection: Client, owner: str, saved: Callable[[], int | None]) -> None:
    """Answer requests for this process's saved position, unless `saved` returns None because others write."""

    async def answer(message: Msg) -> None:
        position = saved()
        if position is not None and message.reply:
            await connection.publish(message.reply, msgspec.json.encode(Saved(position)))

    # No queue group: each replica must answer.
    await connection.subscribe(subjects.saved(owner), cb=answer)


async def ask_saved(
    connection: Client, owners: Collection[str], within_s: float = WITHIN_S
) -> dict[str, int]:
    """Return, per service, the saved position of its slowest process; 0 if none answered."""
    found = await asyncio.gather(*(_ask(connection, owner, within_s) for owner in owners))
    return dict(zip(owners, found, strict=True))


async def _ask(connection: Client, owner: str, within_s: float) -> int:
    positions: list[int] = []

    async def take(message: Msg) -> None:
        positions.append(msgspec.json.decode(message.data, type=Saved).position)

    inbox = connection.new_inbox()
    heard = await connection.subscribe(inbox, cb=take)
    try:
        await connection.publish(subjects.saved(owner), b"", reply=inbox)
        await asyncio.sleep(within_s)
    finally:
        await heard.unsubscribe()
    return min(positions, default=0)
