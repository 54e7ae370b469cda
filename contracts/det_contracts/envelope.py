"""The record around every event, and what a reader gets back."""

from __future__ import annotations

from typing import Any

import msgspec


class Envelope(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of the log as it lies on disk (JSON)."""

    id: str
    """Unique; also the broker's de-duplication id, so that a repeat after an unknown outcome is dropped."""
    name: str
    """Stable name of the event, kept for ever; see `det_contracts.codec`."""
    version: int
    """Version of `data`'s shape, from 1."""
    actor: str
    """Who states it: a service, `worker:<id>`, `trial:<id>` or `user:<name>`."""
    at: float
    """When, by the clock of the service that wrote it into the log: seconds since the epoch, UTC."""
    cause: str
    """Id of the event or command that led to it; empty when nothing did."""
    data: msgspec.Raw
    witness: int = 0
    """Position in WITNESS of a fact that the intake admitted; 0 for what a service decided."""
    stated_at: float = 0.0
    """When it was stated, by the clock of the script or worker that did; 0 where that is `at`."""


class Recorded(msgspec.Struct, frozen=True):
    """An event read back from the log."""

    position: int
    """Place in its stream, from 1; the envelope cannot know it."""
    event: Any
    """The event's record, brought up to its newest version; `Unknown` when this code has no such event."""
    id: str
    actor: str
    at: float
    cause: str = ""
    stream: str = "CONTROL"
    witness: int = 0
    """Position in WITNESS of an admitted fact; 0 for everything else."""


class Unknown(msgspec.Struct, frozen=True):
    """What cannot be folded here: an event of a newer version, or a message that is none. Never fatal."""

    name: str
    """Of the event, or what is wrong with the message."""
    version: int
    """Of the event; 0 for what nobody can read."""
    subject: str = ""
    """Where a message lies that nobody can read."""
