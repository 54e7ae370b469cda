"""Queries that the checkpoints service answers from its folded state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from det_contracts.problems import invalid, not_found
from det_contracts.queries import Checkpoints, PreviewRetention, StorageRefusal, StorageUsed
from det_contracts.script_queries import AskStorage
from services.checkpoints.domain import Checkpoint, State
from services.checkpoints.react import superfluous, validation_of
from services.checkpoints.retention import Keep
from services.checkpoints.script_answers import storage_refusal
from services.kit.quotas import limits


def checkpoints(state: State, query: Checkpoints) -> list[dict[str, Any]]:
    """Rows of the registry that match all filters, oldest first."""
    selected_checkpoints = sorted(_select(state, query), key=lambda c: c.order)
    return [
        _row(state, c)
        for c in selected_checkpoints
        if query.experiment_id in (None, c.experiment_id) and query.trial_id in (None, c.trial_id)
    ]


def _select(state: State, query: Checkpoints) -> Iterable[Checkpoint]:
    if query.uuids:
        return [state.checkpoints[uuid] for uuid in set(query.uuids) if uuid in state.checkpoints]
    if query.trial_id is not None:
        return state.checkpoints_of_trial(query.trial_id)
    if query.experiment_id is not None:
        return state.checkpoints_of_experiment(query.experiment_id)
    # An answer is one message, and a registry may have a million rows.
    raise invalid("name uuids, a trial or an experiment: only the gateway lists all checkpoints")


def _row(state: State, checkpoint: Checkpoint) -> dict[str, Any]:
    validation = validation_of(state, checkpoint)
    row: dict[str, Any] = msgspec.to_builtins(checkpoint)
    row["metric"] = validation.metric if validation else None
    row["size_bytes"] = checkpoint.size_bytes
    return row


def preview_retention(state: State, query: PreviewRetention) -> list[str]:
    """The checkpoints that would be deleted, oldest first."""
    experiment = state.experiments.get(query.experiment_id)
    if experiment is None:
        raise not_found("experiment", query.experiment_id)
    keep = Keep(query.experiment_best, query.trial_best, query.trial_latest)
    return superfluous(state, experiment, keep)


def storage_used(state: State, query: StorageUsed) -> dict[str, int]:
    """Bytes used by each quota holder."""
    return limits.usage_of(state, state.storage_usage)


def refusal(state: State, query: StorageRefusal) -> dict[str, str]:
    """Why nothing more may be stored."""
    return {"reason": storage_refusal(state, query.trial_id, AskStorage(query.size_bytes)) or ""}


ANSWERS: dict[Any, Callable[[State, Any], Any]] = {
    Checkpoints: checkpoints,
    StorageUsed: storage_used,
    StorageRefusal: refusal,
    PreviewRetention: preview_retention,
}
