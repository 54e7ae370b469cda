"""Settings of the metrics service."""

from __future__ import annotations

from dataclasses import dataclass

from det_contracts.metrics_shards import MAX_SHARDS
from services.kit.settings import BadSettings, ServiceSettings


@dataclass(frozen=True)
class MetricsSettings(ServiceSettings):
    """The settings beyond those common to all services."""

    metric_keep_days: float = 0.0
    """The curves of an ended trial are deleted this many days after its last report; 0: never."""
    log_keep_days: float = 0.0
    """Log lines are deleted when they are this many days old; 0: never."""
    log_keep_mib: int = 0
    """The oldest log lines are deleted when all together exceed this size as stored, in MiB; 0: never."""
    metrics_shards: int = 1
    """Number of metrics processes that share the trials; it can grow, and never shrink."""
    metrics_shard: int = 1
    """Which of them this process is, counted from 1."""
    metrics_store: str = ""
    """Where this database is copied: an absolute directory, or s3://bucket[/prefix]; empty: nowhere. A lost
    database is filled again from the newest copy."""
    metrics_copy_hours: float = 6.0
    """Longest time between two copies; shorter if REPORTS or LOGS would otherwise drop what is not copied."""
    metrics_copy_keep_days: float = 7.0
    """A copy is deleted this many days after the next one was made: a backup of the log may need it."""

    def __post_init__(self) -> None:
        """Raise `BadSettings` for a number of shards that cannot be."""
        if not 1 <= self.metrics_shards <= MAX_SHARDS:
            raise BadSettings(
                f"STEADFAST_METRICS_SHARDS={self.metrics_shards}: give a number from 1 to {MAX_SHARDS}"
            )
        if not 1 <= self.metrics_shard <= self.metrics_shards:
            raise BadSettings(
                f"STEADFAST_METRICS_SHARD={self.metrics_shard}: give a number from 1 to "
                f"STEADFAST_METRICS_SHARDS, which is {self.metrics_shards}"
            )
        if self.metrics_copy_hours <= 0:
            raise BadSettings(
                f"STEADFAST_METRICS_COPY_HOURS={self.metrics_copy_hours:g}: must be more than 0"
            )
