"""Answers queries to all shards: asks those that know something of it, and joins their answers.

Every shard does this, sharing the work. A shard that is away makes only those queries fail that need it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import msgspec

from det_contracts import queries
from det_contracts.metrics_shards import OWNER, owner_of_shard, shard_subject
from services.kit.bus import BusClient, BusServer, RawAnswer
from services.kit.parts import Parts
from services.metrics.domain import Sharing, sharing_of
from services.metrics.sharing.joining import join, split

Answered = tuple[int, Any]


async def serve_all_shards(parts: Parts, kinds: Collection[type]) -> None:
    """Answer these kinds of queries for all shards, as soon as they have agreed on their number."""
    await parts.runner.ready.wait()
    server = BusServer(parts.connection, OWNER, parts.measures, parts.tracer)

    def answer_of(kind: type) -> Callable[[Any, str, int], Awaitable[Answered]]:
        async def reply(query: Any, stream: str, position: int) -> Answered:
            sharing = sharing_of(parts.runner.state.sharing)
            return await answer(parts.bus_client, sharing, query, stream, position)

        return reply

    await server.serve_queries({kind: answer_of(kind) for kind in kinds})


async def answer(bus_client: BusClient, sharing: Sharing, query: Any, stream: str, position: int) -> Answered:
    """Return the position and the value of the answer of all shards. Raises `Refused` if one is away."""
    parts = split(sharing, query)
    raw_answers = await asyncio.gather(
        *(_ask(bus_client, shard, part, stream, position) for shard, part in parts.items())
    )
    # Passed on without being decoded: questions about one trial or task are the most frequent and the
    # largest.
    if len(raw_answers) == 1:
        return raw_answers[0].position, raw_answers[0].value
    values = [msgspec.json.decode(raw_answer.value) for raw_answer in raw_answers]
    # Joining pages takes milliseconds, and this process also folds.
    joined = await asyncio.to_thread(join, query, values)
    return max(raw_answer.position for raw_answer in raw_answers), joined


async def _ask(bus_client: BusClient, shard: int, query: Any, stream: str, position: int) -> RawAnswer:
    ask = queries.Ask(msgspec.Raw(msgspec.json.encode(query)), position, stream)
    return await bus_client.forward(owner_of_shard(shard), shard_subject(shard), type(query), ask)
