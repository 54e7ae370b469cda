"""The model registry: named models with numbered versions (client spec, section 2)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from determined.common.api.errors import NotFoundException
from determined.experimental import _model_version
from determined.experimental._enums import ModelOrderBy, on_the_wire
from determined.experimental._model_version import ModelVersion
from determined.transport import instant
from determined.transport.identity import in_path
from determined.transport.pages import read_all
from determined.transport.rest import AnySession, Session, speaking


class _Description:
    """Descriptive fields of a model. A change appears in the object once the master has made it."""

    _session: Session
    model_id: int
    name: str
    metadata: dict[str, Any]

    def add_metadata(self, metadata: dict[str, Any]) -> None:
        """Set keys of the model's metadata.

        Args:
            metadata: Values by key. Other keys keep their values.

        Example:
            ```python
            client.get_model("digits").add_metadata({"dataset": "digits-2024"})
            ```
        """
        self._patch({"metadata": {**self.metadata, **metadata}})

    def remove_metadata(self, keys: Iterable[str]) -> None:
        """Remove keys from the model's metadata.

        Args:
            keys: The keys to remove. Unknown keys are ignored.

        Example:
            ```python
            client.get_model("digits").remove_metadata(["dataset"])
            ```
        """
        removed = set(keys)
        self._patch({"metadata": {key: value for key, value in self.metadata.items() if key not in removed}})

    def set_labels(self, labels: list[str]) -> None:
        """Replace the model's labels.

        Args:
            labels: The new labels.

        Example:
            ```python
            client.get_model("digits").set_labels(["vision", "production"])
            ```
        """
        self._patch({"labels": list(labels)})

    def set_description(self, description: str) -> None:
        """Set the model's description.

        Args:
            description: The new text.

        Example:
            ```python
            client.get_model("digits").set_description("reads handwritten digits")
            ```
        """
        self._patch({"description": description})

    @property
    def _path(self) -> str:
        return f"/api/v1/models/{self.model_id}"

    def _patch(self, changes: dict[str, Any]) -> None:
        answer = self._session.patch(self._path, changes)["model"]
        vars(self).update(vars(from_wire(self._session, answer)))


class Model(_Description):
    """A model in the registry: a name for a series of checkpoints.

    Changes appear in the object once the cluster has made them.

    Attributes:
        model_id: Id of the model.
        name: Name of the model.
        description: A description.
        labels: Keywords for finding the model.
        metadata: Custom values by key.
        creation_time: When the model was created, as a `datetime` in UTC.
        last_updated_time: When the model was last changed, as a `datetime` in UTC.
        username: Name of the user who created it.
        archived: Whether the model is archived.
        workspace_id: Id of its workspace.

    Example:
        ```python
        model = client.create_model("digits", description="handwritten digits")
        version = model.register_version(client.get_experiment(7).top_checkpoint().uuid)
        print(f"{model.name} has version {version.model_version}")
        ```
    """

    def __init__(
        self,
        session: AnySession,
        model_id: int,
        name: str,
        description: str,
        creation_time: datetime | None,
        last_updated_time: datetime | None,
        metadata: dict[str, Any],
        labels: list[str],
        username: str,
        archived: bool,
        workspace_id: int | None = None,
    ) -> None:
        self._session = speaking(session)
        self.model_id, self.name, self.description = model_id, name, description
        self.creation_time, self.last_updated_time = creation_time, last_updated_time
        self.metadata, self.labels, self.username = metadata, labels, username
        self.archived, self.workspace_id = archived, workspace_id

    def __repr__(self) -> str:
        return f"Model(id={self.model_id}, name={self.name}, metadata={json.dumps(self.metadata)})"

    def register_version(self, checkpoint_uuid: str) -> ModelVersion:
        """Register a completed checkpoint as the next version of the model.

        Args:
            checkpoint_uuid: Id of the checkpoint.

        Returns:
            The version.

        Example:
            ```python
            model = client.create_model("digits")
            version = model.register_version(client.get_experiment(7).top_checkpoint().uuid)
            ```
        """
        answer = self._session.post(f"{self._path}/versions", {"checkpointUuid": checkpoint_uuid})
        return _model_version.from_wire(self._session, answer["modelVersion"])

    def get_version(self, version: int = -1) -> ModelVersion | None:
        """Return a version of the model.

        Args:
            version: The version number, or -1 for the latest.

        Returns:
            The version, or None if the latest is requested and there is none.

        Raises:
            NotFoundException: If there is no version with this number.

        Example:
            ```python
            path = client.get_model("digits").get_version().checkpoint.download()
            ```
        """
        if version == -1:
            # Not by `get_versions`: each version has the configuration of its experiment.
            params = {"sortBy": "SORT_BY_VERSION", "orderBy": "ORDER_BY_DESC", "limit": 1}
            listed = self._session.get(f"{self._path}/versions", params)["modelVersions"]
            return _model_version.from_wire(self._session, listed[0]) if listed else None
        answer = self._session.get(f"{self._path}/versions/{version}")
        return _model_version.from_wire(self._session, answer["modelVersion"])

    def get_versions(self, order_by: ModelOrderBy = ModelOrderBy.DESC) -> list[ModelVersion]:
        """Return all versions of the model, sorted by number.

        Args:
            order_by: Sort direction (default: latest first).

        Returns:
            The versions; empty if there are none.

        Example:
            ```python
            newest, *older = client.get_model("digits").get_versions()
            path = newest.checkpoint.download()
            ```
        """
        params = {"sortBy": "SORT_BY_VERSION", "orderBy": on_the_wire("order_by", order_by)}
        versions = read_all(self._session, f"{self._path}/versions", "modelVersions", params)
        return [_model_version.from_wire(self._session, version) for version in versions]

    def archive(self) -> None:
        """Archive the model, so that it cannot be changed.

        Example:
            ```python
            client.get_model("digits").archive()
            ```
        """
        self._session.post(f"{self._path}/archive")
        self.archived = True

    def unarchive(self) -> None:
        """Unarchive the model, so that it can be changed again.

        Example:
            ```python
            client.get_model("digits").unarchive()
            ```
        """
        self._session.post(f"{self._path}/unarchive")
        self.archived = False

    def delete(self) -> None:
        """Delete the model and its versions. Their checkpoints are kept.

        Example:
            ```python
            client.get_model("digits").delete()
            ```
        """
        self._session.delete(self._path)

    def move_to_workspace(self, workspace_name: str) -> None:
        """Move the model to another workspace.

        Args:
            workspace_name: Name of the workspace.

        Raises:
            NotFoundException: If there is no workspace of this name.

        Example:
            ```python
            client.get_model("digits").move_to_workspace("production")
            ```
        """
        id = workspace_id(self._session, workspace_name)
        self._session.post(f"{self._path}/move", {"destinationWorkspaceId": id})
        self.workspace_id = id

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as a JSON-serializable dict. Times are RFC 3339 strings in UTC.

        Example:
            ```python
            print(json.dumps(client.get_model("digits").to_json(), indent=2))
            ```
        """
        names = ("name", "description", "metadata", "labels", "username", "archived", "workspace_id")
        times = {name: getattr(self, name) for name in ("creation_time", "last_updated_time")}
        return {
            "id": self.model_id,
            **{name: getattr(self, name) for name in names},
            **{name: instant.write(at) if at else None for name, at in times.items()},
        }


def from_wire(session: Session, answer: dict[str, Any]) -> Model:
    """Create a model from its REST representation."""
    return Model(
        session,
        int(answer["id"]),
        answer["name"],
        answer.get("description") or "",
        _instant(answer.get("creationTime")),
        _instant(answer.get("lastUpdatedTime")),
        answer.get("metadata") or {},
        list(answer.get("labels") or []),
        answer.get("username") or "",
        bool(answer.get("archived")),
        answer.get("workspaceId"),
    )


def _instant(text: str | None) -> datetime | None:
    return instant.parse(text) if text else None


def get(session: Session, name_or_id: str | int) -> Model:
    """Return a model. Raises `NotFoundException`."""
    return from_wire(session, session.get(f"/api/v1/models/{in_path(str(name_or_id))}")["model"])


def create(session: Session, body: dict[str, Any]) -> Model:
    """Create a model. Fields that are None are omitted."""
    fields = {name: value for name, value in body.items() if value is not None}
    return from_wire(session, session.post("/api/v1/models", fields)["model"])


def find(session: Session, params: dict[str, Any]) -> list[Model]:
    """Return all matching models."""
    filters = {name: value for name, value in params.items() if value is not None}
    return [from_wire(session, model) for model in read_all(session, "/api/v1/models", "models", filters)]


def workspace_id(session: Session, name: str) -> int:
    """Return the id of a workspace. Raises `NotFoundException`."""
    workspaces = read_all(session, "/api/v1/workspaces", "workspaces", {"name": name})
    for workspace in workspaces:
        if workspace["name"] == name:
            return int(workspace["id"])
    raise NotFoundException(f"workspace '{name}' not found")
