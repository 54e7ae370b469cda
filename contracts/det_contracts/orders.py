"""What a worker is told: all that it is to do, in one message, of which the newest is kept.

Written by the scheduler, behind its fold. What a worker missed is in the next message, and what it hears
again changes nothing.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from det_contracts.context import Context
from det_contracts.events.checkpoints import DeletionRequested
from det_contracts.events.gateway import AgentUser
from det_contracts.events.scheduler import AllocationAssigned

NEW = 2**53
"""Of a worker that was never told anything: nothing that was assigned before is its own."""


class TrialFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of a trial needs to know of it."""

    trial_id: int
    experiment_id: int
    run: int
    seed: int
    hparams: dict[str, Any]
    steps_completed: int
    """Of the checkpoint that it starts from."""


class Gang(msgspec.Struct, frozen=True):
    """All nodes of an allocation, by rank."""

    addresses: tuple[str, ...]
    slot_counts: tuple[int, ...]


class Briefing(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a run that does not depend on the host: nothing else need be read for a start."""

    assigned: AllocationAssigned
    user: str
    config: dict[str, Any]
    gang: Gang
    context: Context | None = None
    checkpoint: str | None = None
    trial: TrialFacts | None = None
    deletion: DeletionRequested | None = None
    token: str = ""
    """By which the run uses the REST API in the name of its owner; empty where runs cannot."""
    agent_user: AgentUser | None = None
    """Whose processes they are on the host, where its worker may choose."""
    trace: str = ""
    """The span of the assignment, where somebody follows it."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One allocation that has a part on the worker which is not over."""

    allocation_id: str
    position: int
    """Of the assignment in CONTROL."""
    end: str = ""
    """Why what runs of it must end at once; empty when it need not."""
    lost: bool = False
    """The worker was given up for lost, or had lost it: who does not hold it knows nothing of its end."""
    briefing: Briefing | None = None
    """Until it is known to have started there: from then on the worker has it on its disk."""
    problem: str = ""
    """Why it cannot be told what to run."""


class WorkerOrders(msgspec.Struct, frozen=True, kw_only=True):
    """All that one worker is to do. What it runs and is not told of here is over: it ends that."""

    worker_id: str
    position: int
    """Of CONTROL: nothing that was assigned up to there is missing."""
    session: str
    """The newest that the scheduler knows of; it says which of its words the worker is answered."""
    presence: Literal["here", "lost", "left"]
    host: str = ""
    """Where that one is."""
    address: str = ""
    refused: str = ""
    """The newest session that was refused, as another worker of this id is here."""
    allocations: tuple[Standing, ...]
