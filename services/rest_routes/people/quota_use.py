"""Collects current usage against quotas from the services that know it."""

from __future__ import annotations

import asyncio

import msgspec

from det_contracts import queries
from services.catalogue.peers import Peers, query_or_empty


class Usage(msgspec.Struct, frozen=True):
    """The usage of one quota holder. A field is None while the service that knows it is unavailable."""

    slots: int | None = None
    jobs: int | None = None
    storage_bytes: int | None = None


async def current_usage(peers: Peers, position: int) -> dict[str, Usage]:
    """The usage of each quota holder, including everything up to `position` in the log."""
    usage_queries = (queries.JobsUsed(), queries.StorageUsed())
    had, stored = await asyncio.gather(*(query_or_empty(peers, query, position) for query in usage_queries))
    return {
        holder: Usage(**had.get(holder, {}), storage_bytes=stored.get(holder)) for holder in {*had, *stored}
    }
