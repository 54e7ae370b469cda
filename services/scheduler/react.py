"""The scheduler's rules: what its state calls for.

For an allocation: ask it to leave, kill it, declare it over. For a pool: one pass over the queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from det_contracts.events import scheduler
from services.scheduler.domain import State
from services.scheduler.passes import AT_ONCE, one_pass
from services.scheduler.steps import next_step


def react(state: State, key: tuple[str, Any]) -> Sequence[Any]:
    """Events that one record calls for; none for a record at rest."""
    kind, id = key
    if kind == "pools" and id in state.pools:
        return one_pass(state, id)
    if kind == "allocations" and id in state.allocations:
        return next_step(state, state.allocations[id])
    return ()


def due(state: State) -> float | None:
    """The earliest deadline that has not been stated as passed."""
    first = state.due.first()
    return first[0] if first is not None else None


def expire(state: State, now: float) -> Sequence[Any]:
    """Facts about deadlines that have come, the earliest first; the next few follow these."""
    return [scheduler.DeadlinePassed(id, due_at) for due_at, id in islice(state.due.upto(now), AT_ONCE)]
