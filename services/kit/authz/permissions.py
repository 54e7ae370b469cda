"""All permissions, and which roles grant them."""

from __future__ import annotations

from typing import Literal, get_args

Permission = Literal[
    "anybody",
    "service",
    "logged_in",
    "own_account",
    "view",
    "create",
    "create_task",
    "edit",
    "control",
    "control_task",
    "delete",
    "speak",
    "create_project",
    "edit_project",
    "control_project",
    "create_workspace",
    "control_workspace",
    "read_log",
    "assign_roles",
    "administer_users",
    "administer_cluster",
]
Kind = Literal[
    "cluster", "listed", "body", "user", "session", "token", "workspace", "project", "experiment", "trial",
    "task", "page", "run", "checkpoint", "model", "template",
]  # fmt: skip
"""What a permission applies to: one thing of that kind, or

- `cluster`: the cluster as a whole;
- `page`: what a task serves: to a session, or with the ticket in the address, which the route checks;
- `listed`: any number of things, filtered in the answer to those that may be viewed;
- `body`: what the request body names, checked once it is read, at the latest by the owner of the fact."""
Role = Literal["Viewer", "EditorRestricted", "Editor", "WorkspaceAdmin", "WorkspaceCreator", "ClusterAdmin"]

MEANINGS: dict[Permission, str] = {
    "anybody": "no login is needed",
    "service": "for requests between services; no user or script can make them",
    "logged_in": "view agents, pools, the queue, users and all that is outside workspaces",
    "own_account": "change one's own password, name, settings, sessions and API tokens",
    "view": "read experiments, trials, metrics, logs, checkpoints, models, tasks, projects; fork them",
    "create": "submit experiments, create models",
    "create_task": "start commands and TensorBoards",
    "edit": "edit names, descriptions, labels, notes and metadata; model versions; templates",
    "control": "activate, pause, cancel, kill, archive, move, set priorities, keep or collect checkpoints",
    "control_task": "kill commands and TensorBoards, set their priorities",
    "delete": "delete experiments, checkpoints, models and their versions",
    "speak": "report what a run's script reports: results, checkpoints, log lines",
    "create_project": "create projects in a workspace",
    "edit_project": "edit notes and description of a project",
    "control_project": "rename, archive, move and delete a project",
    "create_workspace": "create workspaces",
    "control_workspace": "rename, archive and delete a workspace",
    "read_log": "read what was decided in the cluster, by whom and why, and how it was used",
    "assign_roles": "assign roles to users and groups, and revoke them",
    "administer_users": "create users and groups, change and deactivate them, set others' passwords",
    "administer_cluster": "enable, disable and drain agents and slots; set quotas; webhooks; read the "
    "cluster's configuration",
}
PERMISSIONS: tuple[Permission, ...] = get_args(Permission)
ROLES: tuple[Role, ...] = get_args(Role)

EVERYBODY: frozenset[Permission] = frozenset({"anybody", "logged_in", "own_account"})
"""Granted to every logged-in user, in either mode and without a role."""
ADMINISTRATION: frozenset[Permission] = frozenset({"assign_roles", "administer_users", "administer_cluster"})
"""In basic mode for administrators only; never for a script."""
OWNED: frozenset[Permission] = frozenset(
    {"control", "control_task", "delete", "speak", "control_project", "control_workspace"}
)
"""In basic mode for the owner of the thing and for administrators."""
NOT_FOR_SCRIPTS: frozenset[Permission] = ADMINISTRATION | {"own_account"}

CLUSTER_ROLES: frozenset[Role] = frozenset({"WorkspaceCreator", "ClusterAdmin"})
"""Can be assigned only for the whole cluster."""

_EDITS: frozenset[Permission] = frozenset(
    {
        "view",
        "create",
        "edit",
        "control",
        "delete",
        "speak",
        "create_project",
        "edit_project",
        "control_project",
    }
)
_TASKS: frozenset[Permission] = frozenset({"create_task", "control_task"})
OF_ROLE: dict[Role, frozenset[Permission]] = {
    "Viewer": frozenset({"view"}),
    "EditorRestricted": _EDITS,
    "Editor": _EDITS | _TASKS,
    "WorkspaceAdmin": _EDITS | _TASKS | {"control_workspace", "assign_roles"},
    "WorkspaceCreator": frozenset({"create_workspace"}),
    "ClusterAdmin": frozenset(PERMISSIONS) - {"service"},
}
ROLE_IDS: dict[Role, int] = {
    "ClusterAdmin": 1,
    "WorkspaceAdmin": 2,
    "WorkspaceCreator": 3,
    "Viewer": 4,
    "Editor": 5,
    "EditorRestricted": 6,
}
"""The ids that clients use."""
API_TYPES: dict[Permission, str] = {
    "view": "VIEW_EXPERIMENT_ARTIFACTS VIEW_EXPERIMENT_METADATA VIEW_NSC VIEW_WORKSPACE VIEW_PROJECT "
    "VIEW_MODEL_REGISTRY VIEW_TEMPLATES",
    "create": "CREATE_EXPERIMENT CREATE_MODEL_REGISTRY",
    "create_task": "CREATE_NSC",
    "edit": "UPDATE_EXPERIMENT_METADATA EDIT_MODEL_REGISTRY "
    "CREATE_TEMPLATES UPDATE_TEMPLATES DELETE_TEMPLATES",
    "control": "UPDATE_EXPERIMENT",
    "control_task": "UPDATE_NSC",
    "delete": "DELETE_EXPERIMENT DELETE_MODEL_REGISTRY DELETE_MODEL_VERSION",
    "create_project": "CREATE_PROJECT",
    "edit_project": "UPDATE_PROJECT",
    "control_project": "DELETE_PROJECT",
    "create_workspace": "CREATE_WORKSPACE",
    "control_workspace": "UPDATE_WORKSPACE DELETE_WORKSPACE",
    "read_log": "VIEW_MASTER_LOGS",
    "assign_roles": "ASSIGN_ROLES",
    "administer_users": "ADMINISTRATE_USER UPDATE_GROUP",
    "administer_cluster": "UPDATE_AGENTS VIEW_MASTER_CONFIG UPDATE_MASTER_CONFIG EDIT_WEBHOOKS",
}
"""The REST API's names for what roles permit, which are finer than our permissions."""
