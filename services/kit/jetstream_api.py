"""Calls to the broker's JetStream API: one look, or one that waits out a stream that has no leader yet.

While the copies of a stream choose who leads, nobody answers what is asked of it: neither yes nor no.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError

API_TIMEOUT_S = 5.0
TRY_S = 2.0
PATIENCE_S = 30.0
RETRY_S = 0.2
AWAY = (NatsError, TimeoutError, OSError)
"""What a call raises when nobody answered."""
MISSING_STREAM = 10059
NO_MESSAGE = 10037
NOT_YOURS = 99403
"""No code of the broker's: the intake says with it that somebody may not state something, ever."""


async def ask(
    connection: Client, subject: str, body: dict[str, Any], timeout_s: float = API_TIMEOUT_S
) -> dict[str, Any]:
    """Call JetStream once; returns what it answers, refusals included. Raises what `AWAY` lists."""
    reply = await connection.request(f"$JS.API.{subject}", msgspec.json.encode(body), timeout=timeout_s)
    answer: dict[str, Any] = msgspec.json.decode(reply.data)
    return answer


async def ask_until_answered(
    connection: Client, subject: str, body: dict[str, Any], patience_s: float = PATIENCE_S
) -> dict[str, Any]:
    """Call JetStream until it answers, for what may be asked twice; raises what `AWAY` lists in the end."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return await ask(connection, subject, body, TRY_S)
        except AWAY:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(RETRY_S)


def is_leaders(answer: dict[str, Any]) -> bool:
    """Whether what is told of a stream comes from where it is led; others may be behind.

    Who answers lists the *other* replicas, so a follower lists the leader among them.
    """
    cluster = answer.get("cluster")
    if not cluster:
        return True
    leader = cluster.get("leader")
    return bool(leader) and all(replica["name"] != leader for replica in cluster.get("replicas") or ())
