"""Versions of registered models (client spec, section 2)."""

from __future__ import annotations

from typing import Any

from determined.experimental import _checkpoint
from determined.experimental._checkpoint import Checkpoint
from determined.transport.rest import AnySession, Session, speaking


class ModelVersion:
    """A registered checkpoint with a version number.

    Changes appear in the object once the cluster has made them.

    Attributes:
        model_version: The version number, starting at 1.
        model_version_id: Id of the version, unique across all models.
        model_id: Id of the model.
        model_name: Name of the model.
        checkpoint: The registered `Checkpoint`.
        name: Name of the version.
        comment: A short description.
        notes: A longer description.
        metadata: Custom values by key.

    Example:
        ```python
        for version in client.get_model("digits").get_versions():    # newest first
            print(version.model_version, version.name, version.notes)
        ```
    """

    def __init__(
        self,
        session: AnySession,
        model_version_id: int,
        checkpoint: Checkpoint | None,
        metadata: dict[str, Any],
        name: str,
        comment: str,
        notes: str,
        model_id: int,
        model_name: str,
        model_version: int,
    ) -> None:
        self._session = speaking(session)
        self.model_version_id, self.model_version = model_version_id, model_version
        self.model_id, self.model_name = model_id, model_name
        self.checkpoint, self.metadata = checkpoint, metadata
        self.name, self.comment, self.notes = name, comment, notes

    def __repr__(self) -> str:
        return f"ModelVersion(model_name={self.model_name!r}, model_version={self.model_version})"

    def set_name(self, name: str) -> None:
        """Set the name of the version.

        Args:
            name: The new name.

        Example:
            ```python
            client.get_model("digits").get_version(3).set_name("in production")
            ```
        """
        self._patch({"name": name})

    def set_notes(self, notes: str) -> None:
        """Set the notes of the version.

        Args:
            notes: The new text.

        Example:
            ```python
            client.get_model("digits").get_version(3).set_notes("trained on the data of May")
            ```
        """
        self._patch({"notes": notes})

    def delete(self) -> None:
        """Delete the version. Its checkpoint is kept.

        Example:
            ```python
            client.get_model("digits").get_version(3).delete()
            ```
        """
        self._session.delete(self._path)

    @property
    def _path(self) -> str:
        return f"/api/v1/models/{self.model_id}/versions/{self.model_version}"

    def _patch(self, changes: dict[str, Any]) -> None:
        answer = self._session.patch(self._path, changes)["modelVersion"]
        self.name, self.comment = answer.get("name") or "", answer.get("comment") or ""
        self.notes, self.metadata = answer.get("notes") or "", answer.get("metadata") or {}


def from_wire(session: Session, answer: dict[str, Any]) -> ModelVersion:
    """Create a version from its REST representation."""
    return ModelVersion(
        session,
        int(answer.get("id") or 0),
        _checkpoint.from_wire(session, answer["checkpoint"]) if answer.get("checkpoint") else None,
        answer.get("metadata") or {},
        answer.get("name") or "",
        answer.get("comment") or "",
        answer.get("notes") or "",
        int(answer["model"]["id"]),
        answer["model"]["name"],
        int(answer["version"]),
    )
