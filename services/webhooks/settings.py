"""Settings of the webhooks service beyond those common to all services."""

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
    """Permitted destinations besides public addresses, separated by commas: networks and `host[:port]`."""
    public_url: str = ""
    """Address of the cluster's web UI, for links in messages. Empty: no links."""
