"""Orders to a worker: everything it should do, in one message, of which only the latest is kept.

The scheduler writes them from its folded state. Anything a worker missed is contained in the next message,
and receiving a message twice has no effect.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from det_contracts.context import Context
from det_contracts.events.checkpoints import DeletionRequested
from det_contracts.events.gateway import AgentUser
from det_contracts.events.scheduler import AllocationAssigned

NO_ORDERS_YET = 2**53
"""Position for a worker without orders so far: no earlier assignment concerns it."""


class TrialFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Information about a trial that a run needs."""

    trial_id: int
    experiment_id: int
    run: int
    seed: int
    hparams: dict[str, Any]
    steps_completed: int
    """Steps of the checkpoint it starts from."""


class Gang(msgspec.Struct, frozen=True):
    """All nodes of an allocation, by rank."""

    addresses: tuple[str, ...]
    slot_counts: tuple[int, ...]


class Briefing(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a run that does not depend on the host. Starting it requires no other information."""

    assigned: AllocationAssigned
    user: str
    config: dict[str, Any]
    gang: Gang
    context: Context | None = None
    checkpoint: str | None = None
    trial: TrialFacts | None = None
    deletion: DeletionRequested | None = None
    token: str = ""
    """The run's credential for the REST API, on behalf of its owner; empty if runs get none."""
    agent_user: AgentUser | None = None
    """The host user that owns its processes, if the worker can choose."""
    trace: str = ""
    """Trace span of the assignment, if it is being traced."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """An allocation with an unfinished part on the worker."""

    allocation_id: str
    position: int
    """Position of the assignment in CONTROL."""
    end: str = ""
    """Why its processes must end immediately; empty if they need not."""
    lost: bool = False
    """Whether the worker was, or had been, declared lost.

    If it does not hold the part, it cannot report its end.
    """
    briefing: Briefing | None = None
    """Included until the part is known to have started there; from then on the worker has it on disk."""
    problem: str = ""
    """Why it cannot be told what to run."""


class WorkerOrders(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one worker should do.

    It must end any allocation that it runs but that is not listed.
    """

    worker_id: str
    position: int
    """Position in CONTROL; all assignments up to there are included."""
    session: str
    """The latest session known to the scheduler.

    It tells which of the worker's registrations this answers.
    """
    presence: Literal["here", "lost", "left"]
    host: str = ""
    """Host of that session."""
    address: str = ""
    refused: str = ""
    """The latest session that was refused, because another worker with this id is present."""
    allocations: tuple[Standing, ...]
