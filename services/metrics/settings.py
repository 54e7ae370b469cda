"""Settings of the metrics service."""

from __future__ import annotations

from dataclasses import dataclass

from services.kit.settings import ServiceSettings


@dataclass(frozen=True)
class MetricsSettings(ServiceSettings):
    """The settings beyond those common to all services."""

    metric_keep_days: float = 0.0
    """The curves of an ended trial are deleted this many days after its last report; 0: never."""
    log_keep_days: float = 0.0
    """Log lines are deleted when they are this many days old; 0: never."""
    log_keep_mib: int = 0
    """The oldest log lines are deleted when all together exceed this size as stored, in MiB; 0: never."""
