"""Decodes log messages into the records that are folded."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

from det_contracts import codec, subjects
from det_contracts.envelope import PassedOver, Recorded
from services.kit.log import Stored

Reader = Callable[[Stored, str], Recorded | PassedOver]
"""Decodes a message of a stream, or passes it over."""


def read_event(message: Stored, stream: str = subjects.CONTROL) -> Recorded:
    """Decode an event of CONTROL. See `codec.read` for messages that are not events."""
    return codec.read(message.subject, message.body, message.position, stream)


def reader_of(kinds: Container[type]) -> Reader:
    """Return a reader of CONTROL that decodes events of these kinds alone; see `codec.read_if`."""

    def read(message: Stored, stream: str) -> Recorded | PassedOver:
        return codec.read_if(kinds, message.subject, message.body, message.position, stream)

    return read


def id_fields(event: Any) -> list[str]:
    """Return the names of an event's fields that hold ids."""
    return [name for name in event.__struct_fields__ if name.endswith("_id")]


def describe_history(owner: str, bad: Recorded, recent: Iterable[Recorded]) -> str:
    """Describe an event that cannot be folded, after those of the recent ones that share an id with it."""
    ids = {getattr(bad.event, name) for name in id_fields(bad.event)}
    past = [
        recorded
        for recorded in recent
        if ids & {getattr(recorded.event, name) for name in id_fields(recorded.event)}
    ]
    lines = [f"  {recorded.position} {recorded.actor}: {recorded.event}" for recorded in past[-20:]]
    return "\n".join([f"{owner} cannot fold message {bad.position} of {bad.stream}; its history:", *lines])
