"""Workspaces, projects and templates, which organize experiments."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from det_contracts.codec import event
from det_contracts.events.gateway.accounts import AgentUser


@event("gateway.template.set", key="template_id")
class TemplateSet(msgspec.Struct, frozen=True, kw_only=True):
    """A named partial configuration was created or changed."""

    template_id: str
    """Derived from the name, which may contain characters that are invalid in a subject."""
    name: str
    config: dict[str, Any]
    """In normal form."""
    workspace_id: int = 1
    reason: str


@event("gateway.template.removed", key="template_id")
class TemplateRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """The template was removed. Experiments submitted with it keep what they got from it."""

    template_id: str
    name: str
    reason: str


@event("gateway.workspace.set", key="workspace_id")
class WorkspaceSet(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace was created or changed."""

    workspace_id: int
    name: str
    owner: str
    archived: bool = False
    pinned_by: tuple[str, ...] = ()
    """Users who pinned it."""
    checkpoint_storage: dict[str, Any] | None = None
    """Storage for its experiments that name none. Keys in it may be encrypted."""
    agent_user: AgentUser | None = None
    """Host user that its tasks run as, regardless of who starts them."""
    default_compute_pool: str = ""
    """Pool for tasks that need slots and name no pool; empty means the cluster's default."""
    default_aux_pool: str = ""
    """The same for tasks without slots."""
    reason: str


@event("gateway.workspace.removed", key="workspace_id")
class WorkspaceRemoved(msgspec.Struct, frozen=True):
    """An empty workspace was removed."""

    workspace_id: int
    reason: str


class Note(msgspec.Struct, frozen=True):
    """A text that belongs to a project."""

    name: str
    contents: str


@event("gateway.project.set", key="project_id")
class ProjectSet(msgspec.Struct, frozen=True, kw_only=True):
    """A project was created or changed."""

    project_id: int
    workspace_id: int
    name: str
    owner: str
    description: str = ""
    archived: bool = False
    notes: tuple[Note, ...] = ()
    reason: str


@event("gateway.project.removed", key="project_id")
class ProjectRemoved(msgspec.Struct, frozen=True):
    """A project without experiments was removed."""

    project_id: int
    reason: str


@event("gateway.experiment.moved", key="experiment_id")
class ExperimentMoved(msgspec.Struct, frozen=True):
    """An experiment was moved to another project."""

    experiment_id: int
    project_id: int
    reason: str


SourceKind = Literal["INFERENCE", "FINE_TUNING"]


@event("gateway.trial.source_reported", key="trial_id")
class TrialSourceReported(msgspec.Struct, frozen=True, kw_only=True):
    """A trial judges a checkpoint or trains it further; its metrics are shown with that checkpoint.

    A later report for the same trial and checkpoint replaces an earlier one.
    """

    trial_id: int
    checkpoint: str
    kind: SourceKind
    model_id: int | None = None
    """The model, if the checkpoint was used as one of its versions."""
    version: int | None = None
    """The number of that version."""
    reason: str
