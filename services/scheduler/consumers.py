"""Creates the consumers through which workers read their orders; workers may not create their own."""

from __future__ import annotations

from typing import Any

import msgspec
from nats.aio.client import Client

from det_contracts import subjects
from services.kit.jetstream_api import UNREACHABLE_ERRORS, request
from services.kit.log import OutcomeUnknown

NANOSECONDS = 1_000_000_000
ACK_WAIT_S = 5
INACTIVE_KEPT_S = 30 * 86400
"""How long the broker keeps the consumer of an inactive worker.

It is recreated when the worker registers again.
"""


def consumer_config(worker_id: str) -> dict[str, Any]:
    """Return the consumer configuration.

    Orders that the worker has not acknowledged are redelivered, unless newer orders have replaced them.
    """
    return {
        "durable_name": worker_id,
        "filter_subject": subjects.orders(worker_id),
        # Only the newest orders count, also for a worker that was away for a month (decision 26).
        "deliver_policy": "last_per_subject",
        "ack_policy": "explicit",
        "ack_wait": ACK_WAIT_S * NANOSECONDS,
        "inactive_threshold": INACTIVE_KEPT_S * NANOSECONDS,
        "max_waiting": 8,
    }


class Consumers:
    """Creates consumers of the ORDERS stream."""

    def __init__(self, connection: Client) -> None:
        self._connection = connection

    async def ensure(self, worker_id: str) -> None:
        """Ensure that a worker has its consumer. Raises `OutcomeUnknown`."""
        consumer_request = {"stream_name": subjects.ORDERS, "config": consumer_config(worker_id)}
        try:
            subject = f"CONSUMER.DURABLE.CREATE.{subjects.ORDERS}.{worker_id}"
            answer = await request(self._connection, subject, consumer_request)
        except (*UNREACHABLE_ERRORS, msgspec.MsgspecError) as error:
            raise OutcomeUnknown(f"no consumer for {worker_id}: {error!r}") from error
        if "error" in answer:
            raise OutcomeUnknown(f"no consumer for {worker_id}: {answer['error'].get('description')}")
