"""What the ORDERS stream holds, and the removal of single orders."""

from __future__ import annotations

from typing import Any

import msgspec
from nats.aio.client import Client

from det_contracts import subjects
from services.kit.jetstream_api import UNREACHABLE_ERRORS, is_from_leader, request
from services.kit.log import OutcomeUnknown

MISSING_MESSAGES = (10037, 10043, 10057)
"""The broker's error codes for a message that is not there; the last is for whatever fails in the store."""


class OrderStream:
    """The stream, as the broker administers it."""

    def __init__(self, connection: Client) -> None:
        self._connection = connection

    async def workers(self) -> list[str]:
        """Return the workers that have orders. Raises `OutcomeUnknown`."""
        prefix, worker_ids = subjects.orders(""), list[str]()
        while True:
            wanted = {"subjects_filter": f"{prefix}>", "offset": len(worker_ids)}
            answer = await self._request(f"STREAM.INFO.{subjects.ORDERS}", wanted)
            if not is_from_leader(answer):
                raise OutcomeUnknown(f"stream {subjects.ORDERS} has no leader to tell what it holds")
            page = answer["state"].get("subjects") or {}
            worker_ids += [subject.removeprefix(prefix) for subject in page]
            # The broker names 100,000 subjects at once.
            if not page or len(worker_ids) >= answer.get("total", 0):
                return worker_ids

    async def delete(self, position: int) -> None:
        """Remove the orders at a position of the stream, if they are still there. Raises `OutcomeUnknown`."""
        await self._request(
            f"STREAM.MSG.DELETE.{subjects.ORDERS}", {"seq": position, "no_erase": True}, MISSING_MESSAGES
        )

    async def _request(
        self, subject: str, body: dict[str, Any], expected_errors: tuple[int, ...] = ()
    ) -> dict[str, Any]:
        try:
            answer = await request(self._connection, subject, body)
        except (*UNREACHABLE_ERRORS, msgspec.MsgspecError) as error:
            raise OutcomeUnknown(f"no answer to {subject}: {error!r}") from error
        error_code = answer.get("error", {}).get("err_code")
        if error_code is not None and error_code not in expected_errors:
            raise OutcomeUnknown(f"the broker refused {subject}: {answer['error'].get('description')}")
        return answer
