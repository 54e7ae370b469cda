"""What counts for quotas, as those who know tell it."""

from __future__ import annotations

import asyncio

import msgspec

from det_contracts import queries
from services.catalogue.peers import Peers, softly


class Used(msgspec.Struct, frozen=True):
    """What counts for the holder of a quota; None while whoever knows is away."""

    slots: int | None = None
    jobs: int | None = None
    storage_bytes: int | None = None


async def used(peers: Peers, position: int) -> dict[str, Used]:
    """What counts for each holder of a quota, with all up to that position of the log."""
    asked = (queries.JobsUsed(), queries.StorageUsed())
    had, stored = await asyncio.gather(*(softly(peers, query, position) for query in asked))
    return {one: Used(**had.get(one, {}), storage_bytes=stored.get(one)) for one in {*had, *stored}}
