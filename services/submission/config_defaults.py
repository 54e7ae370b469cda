"""The defaults under a configuration and its template, most specific first.

They are the `task_container_defaults` of the pool or else the cluster, the checkpoint storage of the
workspace, and that of the cluster. The pool and the workspace are known only once the configuration has been
parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from det_contracts.events.gateway import WorkspaceSet
from services.catalogue.domain import State
from services.people import workspace_records
from services.rest_requests.task_defaults import TaskDefaults, read
from services.submission import secrets

if TYPE_CHECKING:
    from services.rest_requests.backend import Backend

DEFAULT_POOL = "default"
Object = dict[str, Any]


def collect(backend: Backend, workspace_id: int = workspace_records.FIRST, *, fixed: bool = False) -> Object:
    """Collect what `defaults_for` and `pool_for` may need, as plain data that another process can use.

    `workspace_id` is the experiment's workspace if its configuration names none or, with `fixed`, in any
    case.
    """
    workspaces = backend.catalogue.state.workspaces
    # Of all workspaces: which one the configuration names is known only to whoever parses it, perhaps in
    # another process.
    named = {
        workspace.name: workspace_storage(backend, id)
        for id, workspace in workspaces.items()
        if workspace.checkpoint_storage
    }
    return {
        "tasks": read(backend.settings.pools).to_dict(),
        "workspaces": None if fixed else named,
        "here": workspace_storage(backend, workspace_id),
        "pools": {
            workspace.name: pools
            for workspace in workspaces.values()
            if any(pools := _default_pools(workspace))
        },
        "pools_here": default_pools(backend.catalogue.state, workspace_id),
        "cluster": backend.storage,
    }


def workspace_storage(backend: Backend, workspace_id: int) -> Object | None:
    """The checkpoint storage of a workspace, with its keys; None if it has none of its own."""
    workspace = backend.catalogue.state.workspaces.get(workspace_id)
    if workspace is None or workspace.checkpoint_storage is None:
        return None
    whole = {"checkpoint_storage": workspace.checkpoint_storage}
    storage: Object = secrets.unseal_config(whole, secrets.WORKSPACES_OWNER, backend.sealer)[
        "checkpoint_storage"
    ]
    return storage


def defaults_for(collected: Object, *written: object) -> list[Object]:
    """The defaults for `written`, which is a configuration followed by its template."""
    maps = [config for config in written if isinstance(config, Mapping)]
    name = next((config["workspace"] for config in maps if config.get("workspace")), None)
    by_name = isinstance(name, str) and collected["workspaces"] is not None
    own = collected["workspaces"].get(name) if by_name else collected["here"]
    pool = pool_for(collected, *written)
    storages = [
        {"checkpoint_storage": storage} for storage in (own, collected["cluster"]) if storage is not None
    ]
    tasks = TaskDefaults.from_dict(collected["tasks"]).for_pool(pool)
    return [*([tasks] if tasks else []), *storages]


def pool_for(collected: Object, *written: object) -> str:
    """The pool that is named, or else the workspace's default for tasks with or without slots."""
    maps = [config for config in written if isinstance(config, Mapping)]
    written_pool = next(
        (pool for config in maps if isinstance(pool := _resource(config, "resource_pool"), str) and pool), ""
    )
    name = next((config["workspace"] for config in maps if config.get("workspace")), None)
    by_name = isinstance(name, str) and collected["workspaces"] is not None
    own = collected["pools"].get(name, ("", "")) if by_name else collected["pools_here"]
    slots = next((n for config in maps if (n := _resource(config, "slots_per_trial")) is not None), 1)
    return written_pool or pick_pool(own, slots)


def pick_pool(pools: tuple[str, str], slots: object) -> str:
    """The pool of a task that names none."""
    compute, aux = pools
    return (aux if slots == 0 else compute) or DEFAULT_POOL


def default_pools(state: State, workspace_id: int) -> tuple[str, str]:
    """A workspace's default pools for tasks with and without slots; empty means the cluster's default."""
    return _default_pools(state.workspaces.get(workspace_id, workspace_records.WORKSPACE))


def _default_pools(workspace: WorkspaceSet) -> tuple[str, str]:
    return workspace.default_compute_pool, workspace.default_aux_pool


def _resource(config: Mapping[str, Any], name: str) -> Any:
    resources = config.get("resources")
    return resources.get(name) if isinstance(resources, Mapping) else None
