"""What the webhooks service needs to know beside the common settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from services.kit.settings import ServiceSettings


@dataclass(frozen=True)
class Settings(ServiceSettings):
    """Read from the environment."""

    sealing_key: Path | None = None
    """File with the key of the secrets in the log, the same as the gateway's."""
    reachable: str = ""
    """Whom it may tell beside public addresses, with commas: networks and `host[:port]`."""
    public_url: str = ""
    """Address of the cluster's web UI, for links in messages; empty: messages have none."""
