"""What the checkpoints service answers from its folded state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from det_contracts.queries import Checkpoints
from services.checkpoints.domain import Checkpoint, State
from services.checkpoints.react import validation_of


def checkpoints(state: State, query: Checkpoints) -> list[dict[str, Any]]:
    """Rows of the registry that fit all filters, oldest first."""
    return [_row(state, c) for c in _chosen(state, query) if query.trial_id in (None, c.trial_id)]


def _chosen(state: State, query: Checkpoints) -> list[Checkpoint]:
    if query.uuids:
        found = [state.checkpoints[uuid] for uuid in query.uuids if uuid in state.checkpoints]
        return [c for c in found if query.experiment_id in (None, c.experiment_id)]
    experiment_id = query.experiment_id
    if experiment_id is None and query.trial_id in state.trials:
        experiment_id = state.trials[query.trial_id].experiment_id
    experiment = state.experiments.get(experiment_id or 0)
    return [state.checkpoints[uuid] for uuid in experiment.stored] if experiment else []


def _row(state: State, checkpoint: Checkpoint) -> dict[str, Any]:
    found = validation_of(state, checkpoint)
    row: dict[str, Any] = msgspec.to_builtins(checkpoint)
    row["metric"] = found.metric if found else None
    row["size_bytes"] = sum(checkpoint.resources.values())
    return row


ANSWERS: dict[Any, Callable[[State, Any], Any]] = {Checkpoints: checkpoints}
