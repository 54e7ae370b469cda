"""The interface of engines, which run workers for the provisioner.

An engine is trusted as little as possible. Its list may lag, and it may forget what it has started, start
something twice, or not answer. The scheduler decides what follows from its reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

EnginePhase = Literal["queued", "running", "over"]


class EngineUnavailable(Exception):
    """The engine is unreachable or did not answer: nothing is known. The text is its message."""


class EngineRefused(Exception):
    """The engine will not start such a worker; the text says why, in the engine's words."""


class ListedWorker(msgspec.Struct, frozen=True, kw_only=True):
    """One worker as listed by an engine."""

    worker_id: str
    handle: str
    """The engine's own name for it: a job number, a pod name."""
    phase: EnginePhase
    detail: str = ""
    """For users: the handle, what it waits for, why it ended."""
    ends_at: float = 0.0
    """When its host will be removed, in seconds since the epoch; 0: unknown."""


class Engine(Protocol):
    """Runs the workers of one pool."""

    async def list_workers(self) -> Sequence[ListedWorker]:
        """All its workers of this pool and cluster, including recently ended ones. Raises
        `EngineUnavailable`."""

    async def wait_for_change(self) -> None:
        """Return when a worker may have changed; never if the engine cannot tell. Raises
        `EngineUnavailable`."""

    async def start(self, worker_id: str) -> str:
        """Start a worker under an id. Returns a message about it.

        Raises `EngineRefused` if it can never start, and `EngineUnavailable` if it is unknown whether it was
        started.
        """

    async def stop(self, listed_worker: ListedWorker) -> None:
        """Let a worker end in its own time. Does nothing if it has ended. Raises `EngineUnavailable`."""

    async def forget(self, listed_worker: ListedWorker) -> None:
        """Remove what is left of an ended worker, if anything. Raises `EngineUnavailable`."""
