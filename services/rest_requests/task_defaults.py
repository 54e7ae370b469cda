"""Reads `task_container_defaults` from the cluster's configuration file: defaults for all tasks.

task_container_defaults:            # for pools that have none of their own
  environment_variables: [HF_HOME=/data/hf]
  bind_mounts: [{host_path: /data, container_path: /data}]
resource_pools:
  - pool_name: a100
    task_container_defaults: {shm_size_bytes: 8589934592}    # replaces the cluster's
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from det_contracts import expconf
from services.kit import pools_file

Object = dict[str, Any]
CONFIG_PATHS: dict[str, tuple[str, ...]] = {
    "image": ("environment", "image"),
    "force_pull_image": ("environment", "force_pull_image"),
    "registry_auth": ("environment", "registry_auth"),
    "environment_variables": ("environment", "environment_variables"),
    "add_capabilities": ("environment", "add_capabilities"),
    "drop_capabilities": ("environment", "drop_capabilities"),
    "shm_size_bytes": ("resources", "shm_size"),
    "devices": ("resources", "devices"),
    "bind_mounts": ("bind_mounts",),
    "slurm": ("slurm",),
    "pbs": ("pbs",),
}
"""Where each field goes in an experiment's configuration."""
IGNORED_FIELDS = {
    *("network_mode", "dtrain_network_interface", "nccl_port_range", "gloo_port_range", "log_policies"),
    *("cpu_pod_spec", "gpu_pod_spec", "work_dir", "preemption_timeout"),
}
"""Other fields of 0.25, which are accepted but have no effect here."""


class TaskDefaults:
    """Partial configurations, by pool."""

    def __init__(self, cluster: Object | None = None, pools: Mapping[str, Object] | None = None) -> None:
        self._cluster, self._pools = cluster or {}, dict(pools or {})

    def for_pool(self, pool: str) -> Object:
        """The defaults of a pool: its own, or else the cluster's."""
        # Not merged: a pool's own defaults replace the cluster's as a whole, as in 0.25.
        return self._pools.get(pool, self._cluster)

    def to_dict(self) -> Object:
        """Convert to plain data for another process; `from_dict` reads it."""
        return {"cluster": self._cluster, "pools": self._pools}

    @classmethod
    def from_dict(cls, defaults: Object) -> TaskDefaults:
        """Read what `to_dict` returned."""
        return cls(defaults["cluster"], defaults["pools"])


@lru_cache
def read(path: Path | None) -> TaskDefaults:
    """Read the defaults from the pools file, once. Raises `BadSettings` listing every problem."""
    if path is None:
        return TaskDefaults()
    problems: list[str] = []
    top = pools_file.read(path)
    listed = top.get("resource_pools") or []
    pools = {
        str(pool.get("pool_name")): _partial(f"resource_pools[{number}].", pool, problems)
        for number, pool in enumerate(listed if isinstance(listed, list) else [])
        if isinstance(pool, dict) and pool.get("task_container_defaults") is not None
    }
    cluster = _partial("", top, problems)
    pools_file.raise_problems(path, problems)
    return TaskDefaults(cluster, pools)


def _partial(prefix: str, holder: Mapping[str, Any], problems: list[str]) -> Object:
    """Convert a `task_container_defaults` block to a partial configuration in its normal form."""
    block, name = holder.get("task_container_defaults"), f"{prefix}task_container_defaults"
    if block is None:
        return {}
    if not isinstance(block, dict):
        problems.append(f"{name}: a map is expected")
        return {}
    allowed_fields = CONFIG_PATHS.keys() | IGNORED_FIELDS
    problems += [
        f"{name}.{field} is not a field; there are: {', '.join(sorted(allowed_fields))}"
        for field in block.keys() - allowed_fields
    ]
    config: Object = {}
    for field in CONFIG_PATHS.keys() & block.keys():
        *above, last = CONFIG_PATHS[field]
        inner = config
        for part in above:
            inner = inner.setdefault(part, {})
        inner[last] = block[field]
    try:
        return expconf.merge(config, {})
    except expconf.ConfigErrors as errors:
        problems.append(f"{name}: {errors}")
        return {}
