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


async def serve_saved_position(connection: Client, owner: str, saved: Callable[[], int | None]) -> None:
    """Answer requests for this process's saved position, unless `saved` returns None because others write."""

    async def answer(message: Msg) -> None:
        position = saved()
        if position is not None and message.reply:
            await connection.publish(message.reply, msgspec.json.encode(Saved(position)))

    # No queue group: each replica must answer.
    await connection.subscribe(subjects.saved_position(owner), cb=answer)


async def fetch_saved_positions(
    connection: Client, owners: Collection[str], within_s: float = WITHIN_S
) -> dict[str, int]:
    """Return, per service, the saved position of its slowest process; 0 if none answered."""
    positions = await asyncio.gather(*(_fetch_position(connection, owner, within_s) for owner in owners))
    return dict(zip(owners, positions, strict=True))


async def _fetch_position(connection: Client, owner: str, within_s: float) -> int:
    positions: list[int] = []

    async def on_reply(message: Msg) -> None:
        positions.append(msgspec.json.decode(message.data, type=Saved).position)

    inbox = connection.new_inbox()
    subscription = await connection.subscribe(inbox, cb=on_reply)
    try:
        await connection.publish(subjects.saved_position(owner), b"", reply=inbox)
        # The whole time, whoever answers: how many replicas there are is not known, and the slowest one
        # counts.
        await asyncio.sleep(within_s)
    finally:
        await subscription.unsubscribe()
    # Silence is no consent: without an answer nothing may be removed.
    return min(positions, default=0)
