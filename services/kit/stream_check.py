"""Checks that a stream still holds what it acknowledged: nothing cut off, removed, or replaced.

The check runs at every start of reading and every minute. An alarming answer from the leader of a replicated
stream is believed only if it persists, because a new leader may not have all messages at hand yet.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from nats.aio.client import Client

from det_contracts import subjects as names
from services.kit.jetstream_api import MISSING_STREAM, NO_MESSAGE, is_from_leader, request
from services.kit.log import LogTruncated, Mark, PositionRemoved

CONFIRM_S = 5.0
"""Seconds for which a stream must look damaged or gone before that is believed."""
MAX_LISTED = 20
"""Maximum number of positions listed in a message."""


class ReadBroken(Exception):
    """Reading cannot continue like this; a new consumer resumes after the last position."""


class StreamCheck:
    """Asks the broker about one stream and judges the answer."""

    def __init__(self, connection: Client, stream: str, marks: dict[str, Mark]) -> None:
        """`marks` holds, per stream, the newest message read by this process or an earlier one."""
        self._connection = connection
        self._stream = stream
        self._marks = marks
        self._suspected_since: float | None = None

    @property
    def suspected(self) -> bool:
        """True if something seems lost, but it is not certain yet."""
        return self._suspected_since is not None

    async def request(self, subject: str, body: dict[str, Any]) -> dict[str, Any]:
        """Call the JetStream API. Raises `ReadBroken` with the broker's message if it refuses."""
        answer = await request(self._connection, subject, body)
        if "error" in answer:
            raise ReadBroken(f"{subject}: {answer['error'].get('description')}")
        return answer

    async def verify(self, position: int) -> None:
        """Return if the stream is intact for a reader at `position`.

        Raises `LogTruncated` if messages are lost, and `ReadBroken` if it cannot be determined now.
        """
        answer = await request(self._connection, f"STREAM.INFO.{self._stream}", {})
        if not is_from_leader(answer):
            raise ReadBroken(f"stream {self._stream} has no leader to tell its end")
        fault = await self._find_fault(answer, position)
        if not fault and (begins := describe_missing_start(self._stream, answer["state"], position)):
            raise PositionRemoved(begins)
        if not fault:
            self._suspected_since = None
            return
        self._suspected_since = self._suspected_since or time.monotonic()
        alone = "error" not in answer and not (answer.get("cluster") or {}).get("replicas")
        # A broker that is alone knows its stream. Of several, the new leader may not have seen the end yet.
        if alone or time.monotonic() - self._suspected_since > CONFIRM_S:
            raise LogTruncated(fault)
        raise ReadBroken(fault)

    async def _find_fault(self, answer: dict[str, Any], position: int) -> str:
        if "error" in answer:
            if answer["error"].get("err_code") == MISSING_STREAM and position:
                return (
                    f"stream {self._stream} is gone, but position {position} was read already. "
                    + recovery_advice(self._stream, position)
                )
            raise ReadBroken(f"stream {self._stream}: {answer['error'].get('description')}")
        state = answer["state"]
        # Nothing is ever deleted in the middle of CONTROL. Other streams have limits per subject, which
        # leave holes.
        if count_missing(state) and self._stream == names.CONTROL:
            detailed = await self.request(f"STREAM.INFO.{self._stream}", {"deleted_details": True})
            return _describe_holes(self._stream, detailed["state"])
        return describe_lost_tail(self._stream, state, position) or await self._find_replacement(state)

    async def _find_replacement(self, state: dict[str, Any]) -> str:
        mark = self._marks.get(self._stream)
        # Messages may leave the stream by age or by archiving. Then nothing is left to compare.
        if mark is None or mark.position < state["first_seq"]:
            return ""
        answer = await request(self._connection, f"STREAM.MSG.GET.{self._stream}", {"seq": mark.position})
        if answer.get("error", {}).get("err_code", NO_MESSAGE) != NO_MESSAGE:
            raise ReadBroken(f"stream {self._stream}: {answer['error'].get('description')}")
        # A stream that was recreated has other times, even where its positions and contents are the same.
        if "message" in answer and nanoseconds(answer["message"]["time"]) == mark.at:
            return ""
        return (
            f"stream {self._stream} is not the one that was read before: position {mark.position} holds "
            "another message, or none; the log has lost its tail, or was recreated. "
            + recovery_advice(self._stream, mark.position)
        )


def recovery_advice(stream: str, position: int) -> str:
    """Return advice about a stream that holds less than what was already read from it."""
    if stream == names.WITNESS:
        # How far WITNESS was read is stored in CONTROL, so there is no service database to delete.
        return (
            "Restore the broker's data. Without one, what was not admitted yet is lost; to go on, have "
            f"the stream begin behind what was read: nats stream purge {stream} --seq {position + 1} "
            "(docs/guides/operating.md)"
        )
    return "Restore the broker's data, or delete this service's database to start over from what is left"


def count_missing(state: dict[str, Any]) -> int:
    """Return how many messages are missing between the first and the last one."""
    return int(state["last_seq"] - max(state["first_seq"], 1) + 1 - state["messages"])


def describe_lost_tail(stream: str, state: dict[str, Any], position: int) -> str:
    """Describe what is wrong with a stream for a reader at `position`; empty if nothing is."""
    if position > state["last_seq"]:
        return (
            f"stream {stream} ends at position {state['last_seq']}, but {position} was read already: "
            f"the log has lost its tail. {recovery_advice(stream, position)}"
        )
    return ""


def describe_missing_start(stream: str, state: dict[str, Any], position: int) -> str:
    """Explain why CONTROL alone is not enough for a reader at `position`; empty if it is enough."""
    if stream != names.CONTROL or state["first_seq"] <= position + 1:
        return ""
    return (
        f"stream {stream} begins at position {state['first_seq']}: {position + 1} is gone. If it was "
        "archived, set STEADFAST_ARCHIVE to the archive's location; otherwise restore the broker's data"
    )


def _describe_holes(stream: str, state: dict[str, Any]) -> str:
    listed = state.get("deleted") or []
    positions = ", ".join(map(str, listed[:MAX_LISTED])) + (", ..." if len(listed) > MAX_LISTED else "")
    return (
        f"stream {stream} has a hole: from position {state['first_seq']} to {state['last_seq']} it holds "
        f"{state['messages']} messages, {count_missing(state)} too few "
        f"({positions or 'it does not say which'}). These were acknowledged and are lost. Restore the "
        "broker's data; docs/guides/operating.md describes how to go on without a backup"
    )


def nanoseconds(text: str) -> int:
    """Parse a JetStream timestamp into nanoseconds since 1970."""
    whole, _, part = text.removesuffix("Z").partition(".")
    seconds = int(datetime.fromisoformat(f"{whole}+00:00").timestamp())
    return seconds * 1_000_000_000 + int(part.ljust(9, "0") or 0)
