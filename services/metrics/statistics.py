"""Statistics of one metric over many trials: a column of a table of experiments."""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa

from det_contracts.queries import TrialStatistics
from services.metrics.summary import Summary
from services.metrics.tables import SUMMARIES

_by_name = msgspec.json.Decoder(dict[str, msgspec.Raw])
_summary = msgspec.json.Decoder(Summary)
AT_ONCE = 5_000
"""Ids of one statement; databases limit its parameters."""


def trial_statistics(connection: sa.Connection, query: TrialStatistics) -> list[tuple[int, dict[str, Any]]]:
    """Trials that reported the metric, each with its statistics."""
    found = []
    for start in range(0, len(query.trial_ids), AT_ONCE):
        ids = query.trial_ids[start : start + AT_ONCE]
        chosen = sa.select(SUMMARIES.c.trial_id, SUMMARIES.c.body).where(
            SUMMARIES.c.trial_id.in_(ids), SUMMARIES.c.kind == query.group
        )
        for trial_id, body in connection.execute(chosen):
            own = _by_name.decode(body).get(query.name)
            if own is not None:
                found.append((trial_id, _summary.decode(own).plain()))
    return found
