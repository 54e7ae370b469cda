"""The one workspace and its one project."""

from __future__ import annotations

from typing import Any

NAME = "Uncategorized"
PLACE: dict[str, Any] = {
    "projectId": 1,
    "projectName": NAME,
    "projectOwnerId": 1,
    "workspaceId": 1,
    "workspaceName": NAME,
    "parentArchived": False,
}
"""Where every experiment lies."""

_BOTH = {
    "id": 1,
    "name": NAME,
    "archived": False,
    "immutable": True,
    "state": "WORKSPACE_STATE_UNSPECIFIED",
    "userId": 1,
    "username": "admin",
    "errorMessage": "",
}


def workspace(experiments: int) -> dict[str, Any]:
    """The workspace, which holds that many experiments."""
    return {**_BOTH, "numProjects": 1, "numExperiments": experiments, "pinned": False}


def project(experiments: int, active: int) -> dict[str, Any]:
    """The project, which holds that many experiments."""
    return {
        **_BOTH,
        "description": "",
        "notes": [],
        "workspaceId": 1,
        "workspaceName": NAME,
        "numExperiments": experiments,
        "numActiveExperiments": active,
    }
