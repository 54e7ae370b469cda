"""The consumers by which workers follow their orders; they are made for them, as workers may make none."""

from __future__ import annotations

from typing import Any

import msgspec
from nats.aio.client import Client

from det_contracts import subjects
from services.kit.jetstream_api import AWAY, ask
from services.kit.log import OutcomeUnknown

NANOSECONDS = 1_000_000_000
ACK_WAIT_S = 5
KEPT_S = 30 * 86400
"""So long the consumer of a worker stays that does not ask; it is made again when the worker registers."""


def config(worker_id: str) -> dict[str, Any]:
    """What the broker is asked for. What a worker has not acted on comes again; what is replaced does not."""
    return {
        "durable_name": worker_id,
        "filter_subject": subjects.orders(worker_id),
        "deliver_policy": "last_per_subject",
        "ack_policy": "explicit",
        "ack_wait": ACK_WAIT_S * NANOSECONDS,
        "inactive_threshold": KEPT_S * NANOSECONDS,
        "max_waiting": 8,
    }


class Consumers:
    """Makes consumers of ORDERS."""

    def __init__(self, connection: Client) -> None:
        self._connection = connection

    async def make(self, worker_id: str) -> None:
        """See that a worker has its consumer; raises `OutcomeUnknown`."""
        request = {"stream_name": subjects.ORDERS, "config": config(worker_id)}
        try:
            subject = f"CONSUMER.DURABLE.CREATE.{subjects.ORDERS}.{worker_id}"
            answer = await ask(self._connection, subject, request)
        except (*AWAY, msgspec.MsgspecError) as error:
            raise OutcomeUnknown(f"no consumer for {worker_id}: {error!r}") from error
        if "error" in answer:
            raise OutcomeUnknown(f"no consumer for {worker_id}: {answer['error'].get('description')}")
