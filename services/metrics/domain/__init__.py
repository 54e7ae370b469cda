"""Which reports and log batches count, as a fold.

There is no order between REPORTS, LOGS and CONTROL, so every rule here looks at one of them
alone: whatever the streams are folded in, the end is the same. Points and lines are not kept in
memory; the verdict about them travels with the event to the read model (`Judged`).
"""

from services.metrics.domain.fold import evolve
from services.metrics.domain.state import (
    VALIDATION,
    Archive,
    Judged,
    LogLines,
    Piece,
    State,
    dropped_through,
    trimmed_through,
)

__all__ = [
    "VALIDATION",
    "Archive",
    "Judged",
    "LogLines",
    "Piece",
    "State",
    "dropped_through",
    "evolve",
    "trimmed_through",
]
