"""Which trials reported so long ago that their points may go; that they do is then decided as an event.

Time is that of the reports themselves, as their scripts' clocks had it.
"""

from __future__ import annotations

import sqlalchemy as sa

from services.metrics.reports.tables import CHUNKS, STRANDS
from services.metrics.series.chunk import MICROSECONDS


def silent_since(connection: sa.Connection, before: float) -> tuple[int, ...]:
    """Trials that have points, none of them made after `before` (seconds since the epoch)."""
    newest = sa.func.max(CHUNKS.c.last_at)
    query = (
        sa.select(STRANDS.c.trial_id)
        .join(CHUNKS, CHUNKS.c.strand_id == STRANDS.c.id)
        .group_by(STRANDS.c.trial_id)
        .having(newest < round(before * MICROSECONDS))
        .order_by(STRANDS.c.trial_id)
    )
    return tuple(id for (id,) in connection.execute(query))
