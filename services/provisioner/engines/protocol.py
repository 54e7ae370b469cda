"""What the provisioner asks of whatever runs workers: an engine.

An engine is never believed more than needed. It may list late, forget what it started, start twice what it
was asked for once, or not answer; what follows from what it says is decided by the scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

EnginePhase = Literal["queued", "running", "over"]


class EngineAway(Exception):
    """The engine could not be asked, or did not answer: nothing is known. The text says what it said."""


class EngineRefused(Exception):
    """The engine will not start such a worker; the text says why, in its own words."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One worker as an engine lists it."""

    worker_id: str
    handle: str
    """By which the engine knows it: the number of a job, the name of a pod."""
    phase: EnginePhase
    detail: str = ""
    """For people: the handle, what it waits for, why it ended."""
    ends_at: float = 0.0
    """When its host is taken away, in seconds since the epoch; 0: no such time is known."""


class Engine(Protocol):
    """Runs the workers of one pool."""

    async def look(self) -> Sequence[Seen]:
        """All workers of this pool and cluster that it has, also those just ended. Raises `EngineAway`."""

    async def changed(self) -> None:
        """Return when a worker may have changed; for ever where the engine tells nobody. `EngineAway`."""

    async def start(self, worker_id: str) -> str:
        """Have a worker started under an id; returns what there is to say of it.

        Raises `EngineRefused` where it never will be, `EngineAway` where it is not known whether it was.
        """

    async def stop(self, seen: Seen) -> None:
        """Have a worker ended, in its own time; one that has ended is nothing. Raises `EngineAway`."""

    async def forget(self, seen: Seen) -> None:
        """Clear away what is left of a worker that has ended, if anything. Raises `EngineAway`."""
