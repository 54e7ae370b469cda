"""Models and their versions (REST spec, section 5)."""

from __future__ import annotations

from typing import Any

from services.catalogue.api_values import instant
from services.catalogue.domain import Model, ModelVersion, State
from services.people import users


def model(one: Model, state: State) -> dict[str, Any]:
    """A model."""
    user = users.named(state, one.user)
    return {
        "id": one.id,
        "name": one.name,
        "description": one.description,
        "metadata": one.metadata,
        "labels": list(one.labels),
        "notes": one.notes,
        "archived": one.archived,
        "creationTime": instant(one.created_at),
        "lastUpdatedTime": instant(one.changed_at),
        "numVersions": one.versions,
        "username": user.username if user else one.user,
        "userId": user.id if user else 0,
        "workspaceId": one.workspace_id,
    }


def version(one: ModelVersion, state: State, checkpoint: dict[str, Any]) -> dict[str, Any]:
    """A version, with its model and its checkpoint."""
    user = users.named(state, one.user)
    return {
        "id": one.id,
        "version": one.number,
        "model": model(state.models[one.model_id], state),
        "checkpoint": checkpoint,
        "name": one.name,
        "comment": one.comment,
        "notes": one.notes,
        "metadata": one.metadata,
        "labels": list(one.labels),
        "creationTime": instant(one.created_at),
        "lastUpdatedTime": instant(one.changed_at),
        "username": user.username if user else one.user,
        "userId": user.id if user else 0,
    }
