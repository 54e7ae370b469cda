"""How far each process has read the log, and how far its database is behind.

It is sent on request only, so an idle cluster has nothing to send.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from det_contracts import subjects

WITHIN_S = 2.0
"""Seconds that a process has to answer."""
QUIET_S = 0.25
"""Seconds after an answer in which that of the next replica is expected."""
MAX_REPLICAS = 50


class LogProgress(msgspec.Struct, frozen=True):
    """A process's progress with a stream, or with saving what it has read."""

    name: str
    """The name of the stream, or `services.kit.lag.SAVING`."""
    position: int
    behind: int
    """Number of messages known to exist that are still to be processed."""
    late_s: float
    """Seconds for which the oldest of them is overdue; 0 if none is."""


class ProcessProgress(msgspec.Struct, frozen=True):
    """The answer of one process."""

    replica: str
    leads: bool
    """Whether it decides and saves; other replicas of the service only read along."""
    progress: list[LogProgress]


async def serve_log_progress(connection: Client, owner: str, report: Callable[[], ProcessProgress]) -> None:
    """Answer requests for the progress of this process, which is a replica of `owner`."""

    async def answer(message: Msg) -> None:
        if message.reply:
            await connection.publish(message.reply, msgspec.json.encode(report()))

    # No queue group: each replica must answer.
    await connection.subscribe(subjects.log_progress(owner), cb=answer)


async def fetch_log_progress(
    connection: Client, owners: Collection[str], within_s: float = WITHIN_S
) -> dict[str, list[ProcessProgress]]:
    """Return, per service, what each of its processes answers; nothing for a service that does not answer.

    Args:
        connection: A connection of a service.
        owners: The services to ask, for example `("searcher", "metrics")`.
        within_s: Seconds within which the first replica of a service must answer.

    Raises:
        nats.errors.Error: The broker cannot be reached.
    """
    answers = await asyncio.gather(*(_fetch(connection, owner, within_s) for owner in owners))
    return dict(zip(owners, answers, strict=True))


async def _fetch(connection: Client, owner: str, within_s: float) -> list[ProcessProgress]:
    inbox = connection.new_inbox()
    subscription = await connection.subscribe(inbox)
    try:
        await connection.publish(subjects.log_progress(owner), b"", reply=inbox)
        return await _replies(subscription, within_s)
    finally:
        await subscription.unsubscribe()


async def _replies(subscription: Subscription, within_s: float) -> list[ProcessProgress]:
    replies: list[ProcessProgress] = []
    while len(replies) < MAX_REPLICAS:
        try:
            message = await subscription.next_msg(timeout=QUIET_S if replies else within_s)
            replies.append(msgspec.json.decode(message.data, type=ProcessProgress))
        except (TimeoutError, msgspec.MsgspecError):
            # A reply without content is the broker's: nobody listens.
            break
    return sorted(replies, key=lambda reply: (not reply.leads, reply.replica))
