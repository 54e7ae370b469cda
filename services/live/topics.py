"""Maps records to the topics of the live channel."""

from __future__ import annotations

from collections.abc import Iterator

from services.catalogue.domain import State
from services.kit.roots import get_loaded
from services.kit.rules import Key

SERIES = ".series"
"""Suffix of the topics that reports change."""


def topics_of(state: State, key: Key) -> Iterator[str]:
    """Yield the topics affected by a changed record."""
    kind, id = key
    match kind:
        case "experiments":
            yield from ("experiments", f"experiment.{id}")
        # A record that changed is either loaded or deleted.
        case "trials" if (trial := get_loaded(state.trials, id)) is not None:
            yield from (f"trial.{id}", f"experiment.{trial.experiment_id}")
        case "checkpoints" if (checkpoint := get_loaded(state.checkpoints, id)) is not None:
            yield from (f"trial.{checkpoint.trial_id}", f"experiment.{checkpoint.experiment_id}")
        case "allocations" if (run := get_loaded(state.allocations, id)) is not None:
            yield from ("cluster", "queue", f"task.{run.task_id}")
        case "workers" | "away":
            yield "cluster"
        case "tasks" | "models" | "users" | "templates":
            yield str(kind)
        case "groups" | "groups_of" | "roles" | "judging":
            yield "rights"
        case "open_sessions" | "tokens":
            yield "access"
        case "versions":
            yield "models"
        case "workspaces" | "projects":
            yield "workspaces"
