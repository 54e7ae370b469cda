"""Names of the metrics processes that share the trials.

Each is a *shard*: the owner of the verdicts on its trials.
"""

from __future__ import annotations

OWNER = "metrics"
MAX_SHARDS = 8
"""Maximum number of shards. Each reads every message of REPORTS and LOGS and skips those of others."""


def owner_of_shard(shard: int) -> str:
    """Return the owner of a shard, counted from 1. The first has the name of the service that is not shared.

    >>> owner_of_shard(1), owner_of_shard(2)
    ('metrics', 'metrics-2')
    """
    return OWNER if shard == 1 else f"{OWNER}-{shard}"


def shard_subject(shard: int) -> str:
    """Return the name of a shard in the subjects of queries that it answers alone.

    `query.metrics.*` is answered for all shards.

    >>> shard_subject(1)
    'metrics-1'
    """
    return f"{OWNER}-{shard}"


FURTHER_SHARDS = tuple(owner_of_shard(shard) for shard in range(2, MAX_SHARDS + 1))
"""The owners of all shards after the first."""
