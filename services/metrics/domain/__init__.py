"""Decides which reports and log batches count, as a fold.

REPORTS, LOGS and CONTROL are not ordered relative to each other, so every rule here looks at only one of
them: the result does not depend on how the streams interleave. Points and lines are not kept in memory; the
verdict about them travels with the event to the read model (`JudgedBatch`).
"""

from services.metrics.domain.fold import evolve
from services.metrics.domain.sharing import Sharing, sharing_of
from services.metrics.domain.state import (
    VALIDATION,
    Archive,
    JudgedBatch,
    LogLines,
    Piece,
    State,
    dropped_through,
    shard_of_task,
    shard_of_trial,
    trimmed_through,
)

__all__ = [
    "VALIDATION",
    "Archive",
    "JudgedBatch",
    "LogLines",
    "Piece",
    "Sharing",
    "State",
    "dropped_through",
    "evolve",
    "shard_of_task",
    "shard_of_trial",
    "sharing_of",
    "trimmed_through",
]
