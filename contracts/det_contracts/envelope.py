"""The envelope around every event, and the form in which readers receive it."""

from __future__ import annotations

from typing import Any

import msgspec


class Envelope(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of the log as stored on disk (JSON)."""

    id: str
    """Unique. Also the broker's deduplication id, so a retry after an unknown outcome is dropped."""
    name: str
    """Stable name of the event, never reused; see `det_contracts.codec`."""
    version: int
    """Version of the shape of `data`, starting at 1."""
    actor: str
    """Author of the event: a service, `worker:<id>`, `trial:<id>` or `user:<name>`."""
    at: float
    """Time in seconds since the epoch (UTC), by the clock of the service that wrote it to the log."""
    cause: str
    """Id of the event or command that caused it; empty if there is none."""
    data: msgspec.Raw
    witness: int = 0
    """Position in WITNESS of a fact admitted by the intake; 0 for a service's decision."""
    stated_at: float = 0.0
    """When a script or worker stated it, by its own clock; 0 if that equals `at`."""


class Recorded(msgspec.Struct, frozen=True):
    """An event read back from the log."""

    position: int
    """Position in its stream, starting at 1. The envelope cannot contain it."""
    event: Any
    """The event's record in its newest version; `Unknown` if this code does not know the event."""
    id: str
    actor: str
    at: float
    cause: str = ""
    stream: str = "CONTROL"
    witness: int = 0
    """Position in WITNESS of an admitted fact; 0 for everything else."""


class Unknown(msgspec.Struct, frozen=True):
    """A message that cannot be folded here: an event of a newer version, or an invalid message.

    Never fatal.
    """

    name: str
    """Name of the event, or what is wrong with the message."""
    version: int
    """Version of the event; 0 for an unreadable message."""
    subject: str = ""
    """Subject of an unreadable message."""


class PassedOver(msgspec.Struct, frozen=True, gc=False):
    """Takes the place of a message that its reader does not fold, and therefore has not decoded."""

    witness: int = 0
    """As in `Recorded`."""
