"""The engines of the pools that have a provider in the configuration file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from services.kit import pools_file
from services.kit.settings import BadSettings
from services.provisioner.engines.kubernetes_settings import KubernetesSettings
from services.provisioner.engines.process import ProcessEngine, ProcessSettings
from services.provisioner.engines.protocol import Engine
from services.provisioner.engines.slurm import SlurmEngine
from services.provisioner.engines.slurm_script import SlurmSettings
from services.provisioner.settings import Settings


class EnginePool(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine needs to know about its pool."""

    name: str
    slots: int
    """Number of slots that each worker offers."""
    cluster_id: str
    home: Path
    """A folder for this pool's files on this host."""


def _make_kubernetes_engine(pool: EnginePool, settings: Any) -> Engine:
    try:
        # Imported here because only this engine needs the Kubernetes client.
        from services.provisioner.engines.kubernetes import KubernetesEngine
    except ModuleNotFoundError as error:
        raise BadSettings(f"type kubernetes needs pip install 'steadfast[kubernetes]' ({error})") from None
    return KubernetesEngine(pool.name, pool.slots, pool.cluster_id, settings)


MakeEngine = Callable[[EnginePool, Any], Engine]
ENGINES: dict[str, tuple[type[Any], MakeEngine]] = {
    "slurm": (
        SlurmSettings,
        lambda pool, settings: SlurmEngine(pool.name, pool.slots, pool.cluster_id, settings),
    ),
    "kubernetes": (KubernetesSettings, _make_kubernetes_engine),
    "process": (
        ProcessSettings,
        lambda pool, settings: ProcessEngine(pool.name, pool.slots, pool.home, settings),
    ),
}
"""By provider type: its settings, and the function that creates a pool's engine."""


def load_engines(settings: Settings, file: Path) -> Mapping[str, Engine]:
    """The engines by pool. Raises `BadSettings`, which lists everything that is invalid."""
    engines, problems = dict[str, Engine](), list[str]()
    for number, pool in enumerate(pools_file.read(file).get("resource_pools") or ()):
        provider = pool.get("provider") if isinstance(pool, dict) else None
        if not isinstance(provider, dict):
            continue
        at = f"resource_pools[{number}].provider"
        try:
            engines[str(pool.get("pool_name"))] = _make_engine(settings, pool, provider)
        except (msgspec.ValidationError, LookupError, BadSettings) as error:
            problems.append(f"{at}: {error}")
    pools_file.raise_problems(file, problems)
    return engines


def _make_engine(settings: Settings, pool: Mapping[str, Any], provider: Mapping[str, Any]) -> Engine:
    kind = provider.get("type")
    if kind not in ENGINES:
        raise LookupError(f"type is {kind!r}: expected one of {', '.join(ENGINES)}")
    settings_type, make = ENGINES[str(kind)]
    name = str(pool.get("pool_name") or "")
    if problem := pools_file.pool_name_problem(name):
        raise LookupError(f"pool_name: {problem}")
    engine_pool = EnginePool(
        name=name,
        slots=int(provider.get("slots_per_instance", 1)),
        cluster_id=settings.cluster_id,
        home=settings.provisioner_home / name,
    )
    return make(engine_pool, msgspec.convert(provider.get(str(kind)) or {}, settings_type))
