"""Calls to the broker's JetStream API: once, or until a stream has a leader that answers.

While the replicas of a stream elect a leader, requests about the stream get no answer at all.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError

from services.kit.nats_client import NotPermitted

API_TIMEOUT_S = 5.0
ATTEMPT_TIMEOUT_S = 2.0
REQUEST_TIMEOUT_S = 30.0
RETRY_S = 0.2
UNREACHABLE_ERRORS = (NatsError, TimeoutError, OSError)
"""Errors raised when a call gets no answer."""
MISSING_STREAM = 10059
NO_MESSAGE = 10037
NOT_PERMITTED = 99403
"""Not a broker code: the intake uses it to say that a sender may never state something."""


async def request(
    connection: Client, subject: str, body: dict[str, Any], timeout_s: float = API_TIMEOUT_S
) -> dict[str, Any]:
    """Call JetStream once and return the answer, including refusals. Raises the errors in
    `UNREACHABLE_ERRORS`."""
    reply = await connection.request(f"$JS.API.{subject}", msgspec.json.encode(body), timeout=timeout_s)
    answer: dict[str, Any] = msgspec.json.decode(reply.data)
    return answer


async def request_with_retry(
    connection: Client, subject: str, body: dict[str, Any], patience_s: float = REQUEST_TIMEOUT_S
) -> dict[str, Any]:
    """Repeat an idempotent JetStream call until it is answered. Finally raises the errors in
    `UNREACHABLE_ERRORS`."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return await request(connection, subject, body, ATTEMPT_TIMEOUT_S)
        except NotPermitted:
            raise
        except UNREACHABLE_ERRORS:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(RETRY_S)


def is_from_leader(answer: dict[str, Any]) -> bool:
    """Whether stream info comes from the stream's leader; other replicas may be behind.

    The answering broker lists the *other* replicas, so a follower lists the leader among them.
    """
    cluster = answer.get("cluster")
    if not cluster:
        return True
    leader = cluster.get("leader")
    return bool(leader) and all(replica["name"] != leader for replica in cluster.get("replicas") or ())
