"""What the provisioner needs to know beside the common settings."""

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
    """Of this cluster: what it starts on a shared engine carries it, and nothing else is touched there."""
    provisioner_home: Path = Path("/var/lib/steadfast-provisioner")
    """Where workers that it starts on this host have their folders, and scripts are written."""
    provisioner_look_s: float = 5.0
    """How often it looks at engines while nothing is decided."""


def checked(settings: Settings) -> Path:
    """The file with the resource pools; raises `BadSettings` for what makes no sense."""
    if settings.pools is None:
        raise BadSettings("STEADFAST_POOLS is not set: it names the file with the resource pools")
    if settings.provisioner_look_s <= 0:
        raise BadSettings(f"STEADFAST_PROVISIONER_LOOK_S={settings.provisioner_look_s}: more than 0")
    return settings.pools
