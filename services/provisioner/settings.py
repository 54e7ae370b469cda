"""Settings of the provisioner beyond those common to all services."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from services.kit.settings import BadSettings, ServiceSettings


@dataclass(frozen=True)
class Settings(ServiceSettings):
    """Read from the environment."""

    pools: Path | None = None
    """File with the resource pools, the same as the scheduler's."""
    cluster_id: str = "steadfast"
    """Id of this cluster.

    What it starts on a shared engine carries the id, and it touches nothing else there.
    """
    provisioner_home: Path = Path("/var/lib/steadfast-provisioner")
    """Folder for the workers that it starts on this host, and for scripts."""
    provisioner_look_s: float = 5.0
    """How often it checks engines when nothing is decided, in seconds."""


def require_pools_file(settings: Settings) -> Path:
    """The file with the resource pools. Raises `BadSettings` for invalid settings."""
    if settings.pools is None:
        raise BadSettings("STEADFAST_POOLS is not set: it names the file with the resource pools")
    if settings.provisioner_look_s <= 0:
        raise BadSettings(
            f"STEADFAST_PROVISIONER_LOOK_S={settings.provisioner_look_s}: it must be more than 0"
        )
    return settings.pools
