"""What the scheduler answers from its folded state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from det_contracts.queries import ClusterState, Waiting
from services.kit.rules import dump
from services.scheduler.domain import State
from services.scheduler.passes import why_waiting


def waiting(state: State, query: Waiting) -> dict[str, str]:
    """One sentence for each waiting allocation, of one experiment or of all."""
    pending = [id for pool in state.pools.values() for id in pool.pending]
    wanted = [
        id
        for id in pending
        if query.experiment_id is None or state.allocations[id].experiment_id == query.experiment_id
    ]
    return {id: why_waiting(state, id) for id in wanted}


def cluster_state(state: State, query: ClusterState) -> dict[str, Any]:
    """Everything that the scheduler has folded."""
    return dump(state)


ANSWERS: dict[Any, Callable[[State, Any], Any]] = {Waiting: waiting, ClusterState: cluster_state}
