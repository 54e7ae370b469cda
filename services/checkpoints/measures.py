"""What operators see of the checkpoints service's state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from services.checkpoints.domain import State
from services.kit.measures import Reading


def readings(state: State) -> Iterable[Reading]:
    """Checkpoints and what they take, by state; deletions under way."""
    count, size = Counter[tuple[str]](), Counter[tuple[str]]()
    for one in state.checkpoints.values():
        count[one.state,] += 1
        size[one.state,] += sum(one.resources.values())
    yield Reading("checkpoints", "Checkpoints by state", ("state",), count)
    yield Reading("checkpoint_bytes", "Size of checkpoints as reported", ("state",), size)
    running = sum(one.outcome is None for one in state.deletions.values())
    yield Reading("deletions_running", "Tasks that delete checkpoints", (), {(): running})
