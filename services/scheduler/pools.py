"""The resource pools of the cluster's configuration file (scheduling spec, section 7).

scheduler: {type: priority, preemption: true}     # for pools that have none of their own
resource_pools:
  - pool_name: default
    description: the lab's GPUs
    scheduler: {type: fair_share, fitting_policy: best}
  - pool_name: batch
    provider: {type: slurm, slots_per_instance: 4, max_instances: 8, slurm: {partition: gpu}}
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from det_contracts.commands import ConfigurePools
from det_contracts.events.scheduler import PoolSettings
from services.kit import pools_file
from services.scheduler.providers import read_provider

_ON_LOST_FIELDS = ("on_lost", "fence_after_s")
_POOL_FIELDS = {
    "pool_name", "description", "scheduler", "provider", "max_aux_containers_per_agent", *_ON_LOST_FIELDS,
}  # fmt: skip
MIN_FENCE_S = 10.0
"""A worker reports every two seconds that it is in contact, and may need some more time to reconnect."""
_TASK_DEFAULTS = "task_container_defaults"
"""Belongs to the gateway, which completes configurations with these defaults."""
_OLD_AUX_FIELD = "max_cpu_containers_per_agent"
_SCHEDULER_FIELDS = {"type", "fitting_policy", "allow_heterogeneous_fits", "preemption", "default_priority"}


def read_pools(path: Path) -> ConfigurePools:
    """Read the pools of a file. Raises `BadSettings`, which lists every problem and its location."""
    problems: list[str] = []
    command = _parse_pools(pools_file.read(path), problems)
    pools_file.raise_problems(path, problems)
    return command


def _parse_pools(content: Mapping[str, Any], problems: list[str]) -> ConfigurePools:
    problems += _unknown_fields("", content, {"resource_pools", "scheduler", _TASK_DEFAULTS})
    pools: dict[str, PoolSettings] = {}
    descriptions: dict[str, str] = {}
    listed = content.get("resource_pools") or [{"pool_name": "default"}]
    if not isinstance(listed, list) or not all(isinstance(pool, dict) for pool in listed):
        problems.append("resource_pools: expected a list of mappings, one per pool")
        listed = []
    for number, pool in enumerate(listed):
        at = f"resource_pools[{number}]"
        name = pool.get("pool_name") or ""
        problems += _unknown_fields(f"{at}.", pool, {*_POOL_FIELDS, _OLD_AUX_FIELD, _TASK_DEFAULTS})
        problems += _name_problems(at, name, pools)
        scheduler = pool.get("scheduler") or content.get("scheduler") or {}
        aux = pool.get("max_aux_containers_per_agent", pool.get(_OLD_AUX_FIELD))
        fields = {} if aux is None else {"max_aux_containers_per_agent": aux}
        fields |= {name: pool[name] for name in _ON_LOST_FIELDS if name in pool}
        provider, wrong = read_provider(f"{at}.provider", pool.get("provider"))
        problems += wrong
        fields |= {"provider": provider}
        settings = _parse_settings(at, scheduler, fields, problems)
        if settings is not None:
            pools[name] = settings
        descriptions[name] = pool.get("description") or ""
    return ConfigurePools(pools=pools, descriptions=descriptions)


def _parse_settings(
    at: str, scheduler: Mapping[str, Any], fields: Mapping[str, Any], problems: list[str]
) -> PoolSettings | None:
    problems += _unknown_fields(f"{at}.scheduler.", scheduler, _SCHEDULER_FIELDS)
    scheduler_fields = {
        ("scheduler" if k == "type" else k): v for k, v in scheduler.items() if k in _SCHEDULER_FIELDS
    }
    try:
        settings = msgspec.convert({**scheduler_fields, **fields}, PoolSettings)
    except msgspec.ValidationError as error:
        problems.append(f"{at}: {error}".replace("$.scheduler", "$.scheduler.type"))
        return None
    if not 1 <= settings.default_priority <= 99:
        problems.append(f"{at}.scheduler.default_priority: priority must be between 1 and 99")
    if not MIN_FENCE_S <= settings.fence_after_s < math.inf:
        problems.append(
            f"{at}.fence_after_s: {settings.fence_after_s:g}: it must be {MIN_FENCE_S:g} s or more"
        )
    if settings.max_aux_containers_per_agent < 0:
        problems.append(f"{at}.max_aux_containers_per_agent must be 0 or more")
    return settings


def _name_problems(at: str, name: str, names: Mapping[str, Any]) -> Iterable[str]:
    if problem := pools_file.pool_name_problem(name):
        yield f"{at}.pool_name: {problem}"
    elif name in names:
        yield f"{at}.pool_name: '{name}' is given twice"


def _unknown_fields(at: str, fields: Mapping[str, Any], allowed: set[str]) -> Iterable[str]:
    return [
        f"{at}{name} is not a field; there are: {', '.join(sorted(allowed))}"
        for name in fields.keys() - allowed
    ]
