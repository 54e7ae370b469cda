"""To the gateway: workspaces, projects and templates."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.creation import Creation
from det_contracts.events.gateway import AgentUser, Note
from det_contracts.ownership import command


@command("gateway")
class SetTemplate(Creation, frozen=True, kw_only=True, tag="set_template"):
    """To the gateway: store a partial configuration under a name, subject to `replaces`."""

    name: str
    config: dict[str, Any]
    user: str
    replaces: bool | None = None
    """True: the name must exist; False: it must not exist; None: either."""
    workspace_id: int | None = None
    """None: its current workspace, or else the first workspace."""


@command("gateway")
class RemoveTemplate(msgspec.Struct, frozen=True, kw_only=True, tag="remove_template"):
    """To the gateway: remove a template."""

    name: str
    user: str


@command("gateway")
class SetWorkspace(Creation, frozen=True, kw_only=True, tag="set_workspace"):
    """To the gateway: create a workspace, if there is no id, or change the given fields. `value`: its id."""

    workspace_id: int | None = None
    name: str | msgspec.UnsetType = msgspec.UNSET
    archived: bool | msgspec.UnsetType = msgspec.UNSET
    pinned: bool | msgspec.UnsetType = msgspec.UNSET
    """By the requesting user."""
    checkpoint_storage: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET
    agent_user: AgentUser | msgspec.UnsetType | None = msgspec.UNSET
    default_compute_pool: str | msgspec.UnsetType = msgspec.UNSET
    default_aux_pool: str | msgspec.UnsetType = msgspec.UNSET
    user: str


@command("gateway")
class RemoveWorkspace(msgspec.Struct, frozen=True, kw_only=True, tag="remove_workspace"):
    """To the gateway: remove a workspace without experiments, and its projects."""

    workspace_id: int
    user: str


@command("gateway")
class SetProject(Creation, frozen=True, kw_only=True, tag="set_project"):
    """To the gateway: create a project, if there is no id, or change the given fields. `value`: its id."""

    project_id: int | None = None
    workspace_id: int | msgspec.UnsetType = msgspec.UNSET
    name: str | msgspec.UnsetType = msgspec.UNSET
    description: str | msgspec.UnsetType = msgspec.UNSET
    archived: bool | msgspec.UnsetType = msgspec.UNSET
    notes: tuple[Note, ...] | msgspec.UnsetType = msgspec.UNSET
    user: str


@command("gateway")
class RemoveProject(msgspec.Struct, frozen=True, kw_only=True, tag="remove_project"):
    """To the gateway: remove a project without experiments."""

    project_id: int
    user: str


@command("gateway")
class MoveExperiment(msgspec.Struct, frozen=True, kw_only=True, tag="move_experiment"):
    """To the gateway: move an experiment to another project."""

    experiment_id: int
    project_id: int
    user: str
