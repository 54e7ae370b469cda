"""Decodes log messages into the records that are folded."""

from __future__ import annotations

from det_contracts import codec, subjects
from det_contracts.envelope import Recorded
from services.kit.log import Stored


def read_event(message: Stored, stream: str = subjects.CONTROL) -> Recorded:
    """Decode an event of CONTROL. See `codec.read` for messages that are not events."""
    return codec.read(message.subject, message.body, message.position, stream)
