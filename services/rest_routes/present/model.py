"""Models and their versions (REST spec, section 5)."""

from __future__ import annotations

from typing import Any

from services.catalogue.api_values import format_time
from services.catalogue.domain import Model, ModelVersion, State
from services.people import users


def model(record: Model, state: State) -> dict[str, Any]:
    """A model."""
    user = users.by_any_name(state, record.user)
    return {
        "id": record.id,
        "name": record.name,
        "description": record.description,
        "metadata": record.metadata,
        "labels": list(record.labels),
        "notes": record.notes,
        "archived": record.archived,
        "creationTime": format_time(record.created_at),
        "lastUpdatedTime": format_time(record.changed_at),
        "numVersions": record.versions,
        "username": user.username if user else record.user,
        "userId": user.id if user else 0,
        "workspaceId": record.workspace_id,
    }


def version(record: ModelVersion, state: State, checkpoint: dict[str, Any]) -> dict[str, Any]:
    """A version, with its model and its checkpoint."""
    user = users.by_any_name(state, record.user)
    return {
        "id": record.id,
        "version": record.number,
        "model": model(state.models[record.model_id], state),
        "checkpoint": checkpoint,
        "name": record.name,
        "comment": record.comment,
        "notes": record.notes,
        "metadata": record.metadata,
        "labels": list(record.labels),
        "creationTime": format_time(record.created_at),
        "lastUpdatedTime": format_time(record.changed_at),
        "username": user.username if user else record.user,
        "userId": user.id if user else 0,
    }
