"""A worker's share of the briefing for an allocation."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from det_contracts import orders
from det_contracts.context import Context
from det_contracts.events.checkpoints import DeletionRequested
from det_contracts.events.gateway import AgentUser
from det_contracts.events.scheduler import OwnKind
from worker.environment import Task, Trial


class Gang(msgspec.Struct, frozen=True):
    """All nodes of an allocation, by rank."""

    addresses: tuple[str, ...]
    slot_counts: tuple[int, ...]
    rank: int
    """Rank of this node."""


class Briefing(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a run that does not depend on the host."""

    task: Task
    gang: Gang
    config: dict[str, Any]
    context: Context | None
    deletion: DeletionRequested | None = None
    agent_user: AgentUser | None = None
    """The account it runs as, if its owner is linked with one."""
    fence_s: float = 0.0
    """Its host ends it after this time without contact, in seconds; 0: never."""


def share_of(worker_id: str, briefing: orders.Briefing) -> Briefing:
    """One worker's share of an assignment's briefing."""
    assigned = briefing.assigned
    rank = next(part.rank for part in assigned.parts if part.worker_id == worker_id)
    gang = Gang(briefing.gang.addresses, briefing.gang.slot_counts, rank)
    task = Task(
        task_id=assigned.task_id,
        allocation_id=assigned.allocation_id,
        resources_id=f"{assigned.allocation_id}-{rank}",
        task_type=assigned.kind,
        user=briefing.user,
        user_token=briefing.token,
        session_token=briefing.token,
        latest_checkpoint=briefing.checkpoint,
        trial=_trial(briefing),
        config=briefing.config if assigned.kind in get_args(OwnKind) else {},
    )
    return Briefing(
        task=task,
        gang=gang,
        config=briefing.config,
        context=briefing.context,
        deletion=briefing.deletion,
        agent_user=briefing.agent_user,
        fence_s=assigned.fence_s,
    )


def _trial(briefing: orders.Briefing) -> Trial | None:
    facts = briefing.trial
    return None if facts is None else Trial(config=briefing.config, **msgspec.structs.asdict(facts))
