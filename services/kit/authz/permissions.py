"""What can be permitted, and whom each role permits it to."""

from __future__ import annotations

from typing import Literal, get_args

Permission = Literal[
    "anybody",
    "service",
    "logged_in",
    "own_account",
    "view",
    "create",
    "edit",
    "control",
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
"""What a permission is asked for: one thing of that kind, or

- `cluster`: the cluster as a whole;
- `page`: what a task serves: for a session, or for the ticket in the address, which the route looks at;
- `listed`: any number of things, of which the answer holds those that may be viewed;
- `body`: what the request's body names: judged when that is read, by the owner of the fact at the latest.
"""
Role = Literal["Viewer", "EditorProjectRestricted", "Editor", "WorkspaceAdmin", "ClusterAdmin"]

MEANINGS: dict[Permission, str] = {
    "anybody": "no login is needed",
    "service": "decided among services; no person and no script can ask for it",
    "logged_in": "look at agents, pools, the queue, users; whatever concerns no workspace",
    "own_account": "one's own password, name, settings, sessions and API tokens",
    "view": "read experiments, trials, metrics, logs, checkpoints, models, tasks, projects; fork them",
    "create": "submit experiments and tasks, make models",
    "edit": "names, descriptions, labels, notes and metadata of what is there; versions of models; templates",
    "control": "activate, pause, cancel, kill, archive, move, give priorities, keep or collect checkpoints",
    "delete": "delete experiments, checkpoints, models and their versions",
    "speak": "state what a run's script states: results, checkpoints, log lines",
    "create_project": "make projects in a workspace",
    "edit_project": "notes and description of a project",
    "control_project": "rename, archive, move and delete a project",
    "create_workspace": "make workspaces",
    "control_workspace": "rename, archive and delete a workspace",
    "read_log": "what was decided in the cluster, by whom and why",
    "assign_roles": "give roles to users and groups, and take them back",
    "administer_users": "make users and groups, change and deactivate them, set others' passwords",
    "administer_cluster": "enable, disable and drain agents and slots; read the cluster's configuration",
}
PERMISSIONS: tuple[Permission, ...] = get_args(Permission)
ROLES: tuple[Role, ...] = get_args(Role)

EVERYBODY: frozenset[Permission] = frozenset({"anybody", "logged_in", "own_account"})
"""Of whoever is logged in, in either mode and without a role."""
ADMINISTRATION: frozenset[Permission] = frozenset({"assign_roles", "administer_users", "administer_cluster"})
"""In basic mode of administrators alone; never of a script."""
OWNED: frozenset[Permission] = frozenset(
    {"control", "delete", "speak", "control_project", "control_workspace"}
)
"""In basic mode of whom the thing belongs to, and of administrators."""
NOT_FOR_SCRIPTS: frozenset[Permission] = ADMINISTRATION | {"own_account"}

_EDITS: frozenset[Permission] = frozenset({"view", "create", "edit", "control", "delete", "speak"})
_PROJECTS: frozenset[Permission] = frozenset({"create_project", "edit_project", "control_project"})
OF_ROLE: dict[Role, frozenset[Permission]] = {
    "Viewer": frozenset({"view"}),
    "EditorProjectRestricted": _EDITS,
    "Editor": _EDITS | _PROJECTS,
    "WorkspaceAdmin": _EDITS | _PROJECTS | {"control_workspace", "assign_roles"},
    "ClusterAdmin": frozenset(PERMISSIONS) - {"service"},
}
