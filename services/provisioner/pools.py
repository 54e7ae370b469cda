"""The engines of the pools that the configuration file lets grow."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from services.kit.settings import BadSettings
from services.provisioner.engines.process import ProcessEngine, ProcessSettings
from services.provisioner.engines.protocol import Engine
from services.provisioner.engines.slurm import SlurmEngine
from services.provisioner.engines.slurm_script import SlurmSettings
from services.provisioner.settings import Settings


class PoolSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine needs to know of its pool."""

    name: str
    slots: int
    """Slots that each worker offers."""
    cluster_id: str
    home: Path
    """A folder for this pool's files on this host."""


Make = Callable[[PoolSetting, Any], Engine]
ENGINES: dict[str, tuple[type[Any], Make]] = {
    "slurm": (
        SlurmSettings,
        lambda pool, given: SlurmEngine(pool.name, pool.slots, pool.cluster_id, given),
    ),
    "process": (ProcessSettings, lambda pool, given: ProcessEngine(pool.name, pool.slots, pool.home, given)),
}
"""By the type of a provider: the settings of its own, and what makes the engine of a pool."""


def engines_of(settings: Settings, file: Path) -> Mapping[str, Engine]:
    """By pool of the file; raises `BadSettings` with all that makes no sense."""
    try:
        found = yaml.safe_load(file.read_text()) or {}
    except (OSError, yaml.YAMLError) as error:
        raise BadSettings(f"cannot read the resource pools in {file}: {error}") from None
    engines, problems = dict[str, Engine](), list[str]()
    for number, pool in enumerate(found.get("resource_pools") or ()):
        provider = pool.get("provider") if isinstance(pool, dict) else None
        if not isinstance(provider, dict):
            continue
        at = f"resource_pools[{number}].provider"
        try:
            engines[str(pool.get("pool_name"))] = _engine(settings, pool, provider)
        except (msgspec.ValidationError, LookupError, BadSettings) as error:
            problems.append(f"{at}: {error}")
    if problems:
        raise BadSettings(f"{file} does not make sense:\n" + "\n".join(f"  {p}" for p in problems))
    return engines


def _engine(settings: Settings, pool: Mapping[str, Any], provider: Mapping[str, Any]) -> Engine:
    kind = provider.get("type")
    if kind not in ENGINES:
        raise LookupError(f"type is {kind!r}: there are {', '.join(ENGINES)}")
    shape, make = ENGINES[str(kind)]
    name = str(pool.get("pool_name") or "")
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        # It becomes part of a path.
        raise LookupError(f"pool_name '{name}' may have letters, digits, '_' and '-' only")
    about = PoolSetting(
        name=name,
        slots=int(provider.get("slots_per_instance", 1)),
        cluster_id=settings.cluster_id,
        home=settings.provisioner_home / name,
    )
    return make(about, msgspec.convert(provider.get(str(kind)) or {}, shape))
