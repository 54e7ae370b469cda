"""Finds trials whose last reports are so old that their points may be removed, as a later event decides.

Age is measured by the reports' own times, from their scripts' clocks.
"""

from __future__ import annotations

import sqlalchemy as sa

from services.metrics.reports.tables import CHUNKS, PARTITIONS
from services.metrics.series.chunk import MICROSECONDS


def find_silent_trials(connection: sa.Connection, before: float) -> tuple[int, ...]:
    """Trials that have points, none of them newer than `before` (seconds since the epoch)."""
    newest = sa.func.max(CHUNKS.c.last_at)
    query = (
        sa.select(PARTITIONS.c.trial_id)
        .join(CHUNKS, CHUNKS.c.partition_id == PARTITIONS.c.id)
        .group_by(PARTITIONS.c.trial_id)
        .having(newest < round(before * MICROSECONDS))
        .order_by(PARTITIONS.c.trial_id)
    )
    return tuple(id for (id,) in connection.execute(query))
