"""From a message of the log to the record that is folded. Whatever lies there, reading it stops nobody."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts import codec, subjects
from det_contracts.envelope import Recorded, Unknown
from det_contracts.events import Decision
from det_contracts.nesting import is_too_deep
from services.kit.log import Stored

DAMAGED = "damaged"
"""Name of what no reader can take. The same bytes are passed over by everybody, always."""


def read_event(message: Stored, stream: str = subjects.CONTROL) -> Recorded:
    """An event; `Unknown` for a message that is damaged, of a newer version, or not on its subject."""
    body = message.body
    try:
        if subjects.is_witnessed(message.subject) and is_too_deep(body):
            return _damaged(message, stream)
        recorded = codec.decode(body, message.position, stream)
    except codec.BadRecord:
        return _damaged(message, stream)
    event = recorded.event
    if type(event) is Unknown or message.subject == _place_of(event):
        return recorded
    return msgspec.structs.replace(recorded, event=Unknown(f"misplaced {type(event).__name__}", 0))


def _damaged(message: Stored, stream: str) -> Recorded:
    return Recorded(message.position, Unknown(DAMAGED, 0), "", "", 0.0, "", stream)


def _place_of(event: Any) -> str:
    return subjects.decision(event.owner) if type(event) is Decision else codec.subject_of(event)
