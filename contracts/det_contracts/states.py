"""States of experiments, trials and allocations, and the transitions between them.

Source: scheduling spec, sections 8.1, 8.3 and 8.4. `docs/states.md` is generated from these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

State = Literal[
    "ACTIVE",
    "PAUSED",
    "STOPPING_COMPLETED",
    "STOPPING_CANCELED",
    "STOPPING_KILLED",
    "STOPPING_ERROR",
    "COMPLETED",
    "CANCELED",
    "ERROR",
    "DELETING",
    "DELETE_FAILED",
    "DELETED",
]
"""States of experiments. Trials do not use the deletion states."""

AllocationState = Literal[
    "PENDING", "ASSIGNED", "PULLING", "STARTING", "RUNNING", "WAITING", "TERMINATING", "TERMINATED"
]

STATES: tuple[State, ...] = get_args(State)
ALLOCATION_STATES: tuple[AllocationState, ...] = get_args(AllocationState)

TERMINAL: frozenset[State] = frozenset({"COMPLETED", "CANCELED", "ERROR"})
OVER: frozenset[State] = TERMINAL | {"DELETING", "DELETE_FAILED", "DELETED"}
"""States in which nothing runs or will run any more."""
STOPPING: frozenset[State] = frozenset(
    {"STOPPING_COMPLETED", "STOPPING_CANCELED", "STOPPING_KILLED", "STOPPING_ERROR"}
)


def _to(*states: State) -> frozenset[State]:
    return frozenset(states)


EXPERIMENT_TRANSITIONS: Mapping[State, frozenset[State]] = {
    "ACTIVE": _to("PAUSED") | STOPPING,
    "PAUSED": _to("ACTIVE") | STOPPING,
    "STOPPING_CANCELED": frozenset({"CANCELED", "STOPPING_KILLED", "STOPPING_ERROR"}),
    "STOPPING_KILLED": frozenset({"CANCELED", "STOPPING_ERROR"}),
    "STOPPING_COMPLETED": frozenset({"COMPLETED", "STOPPING_ERROR"}),
    "STOPPING_ERROR": frozenset({"ERROR"}),
    "COMPLETED": _to("DELETING"),
    "CANCELED": _to("DELETING"),
    "ERROR": _to("DELETING"),
    "DELETING": _to("DELETED", "DELETE_FAILED"),
    "DELETE_FAILED": _to("DELETING"),
    "DELETED": frozenset(),
}

TRIAL_TRANSITIONS: Mapping[State, frozenset[State]] = {
    "ACTIVE": _to("PAUSED", "COMPLETED", "CANCELED", "ERROR") | STOPPING,
    "PAUSED": _to("ACTIVE", "COMPLETED", "CANCELED", "ERROR") | STOPPING,
    "STOPPING_COMPLETED": frozenset(
        {"COMPLETED", "STOPPING_CANCELED", "STOPPING_KILLED", "STOPPING_ERROR", "ERROR"}
    ),
    "STOPPING_CANCELED": frozenset({"CANCELED", "STOPPING_KILLED", "STOPPING_ERROR", "ERROR"}),
    "STOPPING_KILLED": frozenset({"CANCELED", "STOPPING_ERROR", "ERROR"}),
    "STOPPING_ERROR": frozenset({"ERROR"}),
    "COMPLETED": frozenset(),
    "CANCELED": frozenset(),
    "ERROR": frozenset(),
}

ENDS_IN: Mapping[State, State] = {
    "STOPPING_COMPLETED": "COMPLETED",
    "STOPPING_CANCELED": "CANCELED",
    "STOPPING_KILLED": "CANCELED",
    "STOPPING_ERROR": "ERROR",
}


def later_state(old: AllocationState, new: AllocationState) -> AllocationState:
    """Return the later of two allocation states.

    Reports may arrive out of order; states only move forward.
    """
    return max(old, new, key=ALLOCATION_STATES.index)
