"""From a message of the log to the record that is folded."""

from __future__ import annotations

from det_contracts import codec, subjects
from det_contracts.envelope import Recorded
from services.kit.log import Stored


def read_event(message: Stored, stream: str = subjects.CONTROL) -> Recorded:
    """An event of CONTROL; see `codec.read` for what happens to a message that is none."""
    return codec.read(message.subject, message.body, message.position, stream)
