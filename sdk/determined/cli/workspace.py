"""`det workspace` and `det project`: organize experiments (client spec, section 6)."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from determined import yamlfile
from determined.cli import output
from determined.cli.config_file import read_text
from determined.cli.failure import Failure
from determined.cli.grammar import Arg, Noun, OneOf, Run, Verb, arg, one_of
from determined.cli.paging import paging_args, read_pages
from determined.transport import identity
from determined.transport.pages import read_all
from determined.transport.rest import Session

Object = dict[str, Any]
_JSON = arg("--json", action="store_true", help="write the master's response")
_WORKSPACE = arg("workspace_name", help="name of the workspace")
_AGENT = {
    "agent_uid": "agentUid",
    "agent_gid": "agentGid",
    "agent_user": "agentUser",
    "agent_group": "agentGroup",
}
_OWN: tuple[Arg | OneOf, ...] = (
    arg("--agent-uid", type=int, metavar="N", help="user id that tasks run as on the hosts"),
    arg("--agent-user", metavar="NAME", help="user name on the hosts"),
    arg("--agent-gid", type=int, metavar="N", help="group id on the hosts"),
    arg("--agent-group", metavar="NAME", help="group name on the hosts"),
    arg("--default-compute-pool", metavar="POOL", help="pool for tasks that need slots and name no pool"),
    arg(
        "--default-aux-pool",
        metavar="POOL",
        help="the same for tasks without slots; '' for the cluster's default",
    ),
    one_of(
        arg("--checkpoint-storage-config", metavar="JSON", help="checkpoint storage; {} for the cluster's"),
        arg("--checkpoint-storage-config-file", type=Path, metavar="FILE", help="the same in YAML or JSON"),
    ),
)
_PROJECT = arg("project_name", help="name of the project")
_YES = arg("--yes", action="store_true", help="do not ask")
_ALL = arg("-a", "--all", action="store_true", help="include those of other users and archived ones")
_SORT: tuple[Arg, ...] = (
    arg("--sort-by", choices=("id", "name"), default="id", help="default: id"),
    arg("--order-by", choices=("asc", "desc"), default="asc", help="default: asc"),
)


def _params(args: argparse.Namespace) -> Object:
    return {"sortBy": f"SORT_BY_{args.sort_by.upper()}", "orderBy": f"ORDER_BY_{args.order_by.upper()}"}


def list_workspaces(session: Session, args: argparse.Namespace) -> None:
    """List all workspaces."""
    _show(
        args, _workspace_table, read_pages(session, "/api/v1/workspaces", "workspaces", args, _params(args))
    )


def list_projects_below(session: Session, args: argparse.Namespace) -> None:
    """List the projects of a workspace."""
    path = f"/api/v1/workspaces/{_workspace_id(session, args.workspace_name)}/projects"
    _show(args, _project_table, read_pages(session, path, "projects", args, _params(args)))


def create_workspace(session: Session, args: argparse.Namespace) -> None:
    """Create a workspace. Its name must be unique."""
    made = session.post("/api/v1/workspaces", {"name": args.name, **_described(args)})["workspace"]
    _show(args, _own_workspace_table, [made], single=True)


def describe_workspace(session: Session, args: argparse.Namespace) -> None:
    """Show a workspace and its projects."""
    path = f"/api/v1/workspaces/{_workspace_id(session, args.workspace_name)}"
    _show(args, _own_workspace_table, [session.get(path)["workspace"]], single=True)
    if not args.json:
        print("\nAssociated Projects")
        _project_table(session.get(f"{path}/projects")["projects"])


def edit_workspace(session: Session, args: argparse.Namespace) -> None:
    """Change a workspace's name, checkpoint storage, agent user or default pools."""
    changes = ({"name": args.name} if args.name else {}) | _described(args)
    if not changes:
        raise Failure("nothing to change: give --name, a checkpoint storage, an agent user or a default pool")
    path = f"/api/v1/workspaces/{_workspace_id(session, args.workspace_name)}"
    _show(args, _own_workspace_table, [session.patch(path, changes)["workspace"]], single=True)


def _described(args: argparse.Namespace) -> Object:
    """Return the settings given by the options for checkpoint storage, agent user and pools."""
    workspace: Object = {}
    group = {name: getattr(args, name) for name in _AGENT if getattr(args, name) is not None}
    if group:
        workspace["agentUserGroup"] = {_AGENT[name]: value for name, value in group.items()}
    for field, pool in (("Compute", args.default_compute_pool), ("Aux", args.default_aux_pool)):
        if pool is not None:
            workspace[f"default{field}Pool"] = pool
    storage = args.checkpoint_storage_config
    try:
        if storage is not None:
            workspace["checkpointStorageConfig"] = json.loads(storage)
        elif args.checkpoint_storage_config_file is not None:
            text = read_text(args.checkpoint_storage_config_file)
            workspace["checkpointStorageConfig"] = yamlfile.parse(text) or {}
    except (ValueError, yamlfile.YamlProblem) as error:
        raise Failure(f"the checkpoint storage cannot be read: {error}") from None
    if not isinstance(workspace.get("checkpointStorageConfig", {}), dict):
        raise Failure("a checkpoint storage must be a mapping, such as {type: shared_fs, host_path: /data}")
    return workspace


def list_pools(session: Session, args: argparse.Namespace) -> None:
    """List the pools that a workspace may use."""
    path = f"/api/v1/workspaces/{_workspace_id(session, args.workspace_name)}"
    workspace = session.get(path)["workspace"]
    usual = {
        workspace["defaultComputePool"] or "default": "compute",
        workspace["defaultAuxPool"] or "default": "auxiliary",
    }
    if len(usual) == 1:
        usual = dict.fromkeys(usual, "compute, auxiliary")
    pools = read_all(session, f"{path}/available-resource-pools", "resourcePools")
    output.table(["Resource Pool", "Default For"], [[pool, usual.get(pool, "")] for pool in pools])


def delete_workspace(session: Session, args: argparse.Namespace) -> None:
    """Delete an empty workspace."""
    question = f"Deleting workspace {args.workspace_name} cannot be undone. Do you wish to proceed?"
    if not args.yes and not output.confirm(question):
        print("Aborting workspace deletion.")
        return
    session.delete(f"/api/v1/workspaces/{_workspace_id(session, args.workspace_name)}")
    print(f"Successfully deleted workspace {args.workspace_name}.")


def create_project(session: Session, args: argparse.Namespace) -> None:
    """Create a project in a workspace."""
    path = f"/api/v1/workspaces/{_workspace_id(session, args.workspace_name)}/projects"
    made = session.post(path, {"name": args.name, "description": args.description})["project"]
    _show(args, _project_table, [made], single=True)


def describe_project(session: Session, args: argparse.Namespace) -> None:
    """Show a project and its experiments."""
    id = project_id(session, args)
    _show(args, _project_table, [session.get(f"/api/v1/projects/{id}")["project"]], single=True)
    if not args.json:
        print("\nAssociated Experiments")
        # -1 asks for all.
        experiments = session.get("/api/v1/experiments", _own(session, args, id) | {"limit": -1})[
            "experiments"
        ]
        _experiment_table(experiments, args)


def list_experiments(session: Session, args: argparse.Namespace) -> None:
    """List the experiments of a project."""
    params = _own(session, args, project_id(session, args)) | _params(args)
    experiments = read_pages(session, "/api/v1/experiments", "experiments", args, params)
    if args.json:
        output.print_json(experiments)
    else:
        _experiment_table(experiments, args)


def _own(session: Session, args: argparse.Namespace, project: int) -> Object:
    """Return the query for a project's experiments, limited to the user's own unless `--all` is given."""
    mine = {"archived": "false", "users": identity.current_user(session)}
    return {"projectId": project} | ({} if args.all else mine) | ({} if args.json else {"lean": "true"})


def _experiment_table(experiments: list[Object], args: argparse.Namespace) -> None:
    from determined.cli.experiment import show_list

    show_list(experiments, False, args.all)


def edit_project(session: Session, args: argparse.Namespace) -> None:
    """Change a project's name or description."""
    fields = {"name": args.new_name, "description": args.description}
    changes = {key: value for key, value in fields.items() if value is not None}
    made = session.patch(f"/api/v1/projects/{project_id(session, args)}", changes)["project"]
    _show(args, _project_table, [made], single=True)


def delete_project(session: Session, args: argparse.Namespace) -> None:
    """Delete an empty project."""
    question = f"Deleting project {args.project_name} cannot be undone. Do you wish to proceed?"
    if not args.yes and not output.confirm(question):
        print("Aborting project deletion.")
        return
    session.delete(f"/api/v1/projects/{project_id(session, args)}")
    print(f"Successfully deleted project {args.project_name}.")


def _switch(noun: str, verb: str) -> Run:
    def run(session: Session, args: argparse.Namespace) -> None:
        if noun == "workspace":
            path = f"/api/v1/workspaces/{_workspace_id(session, args.workspace_name)}"
        else:
            path = f"/api/v1/projects/{project_id(session, args)}"
        session.post(f"{path}/{verb}")
        done = {"archive": "archived", "unarchive": "un-archived"}[verb]
        print(f"Successfully {done} {noun} {getattr(args, f'{noun}_name')}.")

    return run


def _workspace_id(session: Session, name: str) -> int:
    from determined.experimental import _model

    return _model.workspace_id(session, name)


def project_id(session: Session, args: argparse.Namespace) -> int:
    """Return the id of `project_name` in `workspace_name`. Raises `NotFoundException`."""
    from determined.common.api.errors import NotFoundException

    path = f"/api/v1/workspaces/{_workspace_id(session, args.workspace_name)}/projects"
    for project in session.get(path, {"name": args.project_name})["projects"]:
        if project["name"] == args.project_name:
            return int(project["id"])
    raise NotFoundException(f"project '{args.project_name}' of workspace '{args.workspace_name}' not found")


def _show(args: argparse.Namespace, table: Any, records: list[Object], single: bool = False) -> None:
    if args.json:
        output.print_json(records[0] if single else records)
    else:
        table(records)


def _own_workspace_table(workspaces: list[Object]) -> None:
    _workspace_table(workspaces, storage=True)


def _workspace_table(workspaces: list[Object], storage: bool = False) -> None:
    """Print workspaces. The columns of 0.25 come first, where a list has no storage."""
    last = {"defaultComputePool": "Default Compute Pool", "defaultAuxPool": "Default Aux Pool"}
    last |= {"checkpointStorageConfig": "Checkpoint Storage Config"} if storage else {}
    last |= {"numExperiments": "# Experiments", "archived": "Archived"}
    agent = ("agentUid", "agentGid", "agentUser", "agentGroup")
    headers = ["ID", "Name", "# Projects", "Agent Uid", "Agent Gid", "Agent User", "Agent Group"]
    headers += last.values()
    rows = [
        [
            *(workspace.get(field) for field in ("id", "name", "numProjects")),
            *((workspace.get("agentUserGroup") or {}).get(field) for field in agent),
            *(workspace.get(field) for field in last),
        ]
        for workspace in workspaces
    ]
    output.table(headers, rows)


def _project_table(projects: list[Object]) -> None:
    headers = ["ID", "Name", "Description", "# Experiments", "# Active Experiments", "Archived"]
    fields = ("id", "name", "description", "numExperiments", "numActiveExperiments", "archived")
    output.table(headers, [[project.get(field) for field in fields] for project in projects])


WORKSPACE = Noun(
    "workspace w",
    "organize projects in workspaces",
    (
        Verb("list ls", "list workspaces", list_workspaces, (*_SORT, *paging_args(), _JSON)),
        Verb(
            "list-projects",
            "list the projects of a workspace",
            list_projects_below,
            (_WORKSPACE, *_SORT, *paging_args(), _JSON),
        ),
        Verb(
            "create",
            "create a workspace",
            create_workspace,
            (arg("name", help="name of the workspace"), *_OWN, _JSON),
        ),
        Verb("describe", "describe a workspace", describe_workspace, (_WORKSPACE, _JSON)),
        Verb(
            "edit",
            "change a workspace",
            edit_workspace,
            (_WORKSPACE, arg("--name", help="new name"), *_OWN, _JSON),
        ),
        Verb("list-pools", "list the resource pools of a workspace", list_pools, (_WORKSPACE,)),
        Verb("delete", "delete a workspace", delete_workspace, (_WORKSPACE, _YES)),
        Verb("archive", "archive a workspace", _switch("workspace", "archive"), (_WORKSPACE,)),
        Verb("unarchive", "unarchive a workspace", _switch("workspace", "unarchive"), (_WORKSPACE,)),
    ),
    default="list",
)
PROJECT = Noun(
    "project p",
    "organize experiments in projects",
    (
        Verb("list ls", "list projects", list_projects_below, (_WORKSPACE, *_SORT, *paging_args(), _JSON)),
        Verb(
            "create",
            "create a project",
            create_project,
            (
                _WORKSPACE,
                arg("name", help="name of the project"),
                arg("--description", default="", metavar="TEXT", help="what it is for"),
                _JSON,
            ),
        ),
        Verb("describe", "describe a project", describe_project, (_WORKSPACE, _PROJECT, _ALL, _JSON)),
        Verb(
            "list-experiments",
            "list the experiments of a project",
            list_experiments,
            (_WORKSPACE, _PROJECT, _ALL, *_SORT, *paging_args(), _JSON),
        ),
        Verb(
            "edit",
            "change a project",
            edit_project,
            (
                _WORKSPACE,
                _PROJECT,
                arg("--new_name", "--new-name", metavar="NAME", help="the new name"),
                arg("--description", metavar="TEXT", help="the new description"),
                _JSON,
            ),
        ),
        Verb("delete", "delete a project", delete_project, (_WORKSPACE, _PROJECT, _YES)),
        Verb("archive", "archive a project", _switch("project", "archive"), (_WORKSPACE, _PROJECT)),
        Verb("unarchive", "unarchive a project", _switch("project", "unarchive"), (_WORKSPACE, _PROJECT)),
    ),
)
