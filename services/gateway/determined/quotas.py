"""Collects current usage against quotas from the services that know it."""

from __future__ import annotations

import asyncio

import msgspec

from det_contracts import queries
from services.catalogue.peers import Peers, softly


class Used(msgspec.Struct, frozen=True):
    """The usage of one quota holder. A field is None while the service that knows it is unavailable."""

    slots: int | None = None
    jobs: int | None = None
    storage_bytes: int | None = None


async def used(peers: Peers, position: int) -> dict[str, Used]:
    """The usage of each quota holder, including everything up to `position` in the log."""
    asked = (queries.JobsUsed(), queries.StorageUsed())
    had, stored = await asyncio.gather(*(softly(peers, query, position) for query in asked))
    return {one: Used(**had.get(one, {}), storage_bytes=stored.get(one)) for one in {*had, *stored}}
