"""Settings of the metrics service."""

from __future__ import annotations

from dataclasses import dataclass

from services.kit.settings import ServiceSettings


@dataclass(frozen=True)
class MetricsSettings(ServiceSettings):
    """Beside what every service needs."""

    metric_keep_days: float = 0.0
    """The curves of a trial are deleted this long after its last report, once it has ended; 0: never."""
    log_keep_days: float = 0.0
    """Log lines are deleted when they are this old; 0: never."""
    log_keep_mib: int = 0
    """The oldest log lines are deleted when all of them take more than this as stored; 0: never."""
