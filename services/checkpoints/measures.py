"""Metrics of the checkpoints service's state, for operators."""

from __future__ import annotations

from collections.abc import Iterable

from services.checkpoints.domain import State
from services.kit.process_metrics import Reading


def readings(state: State) -> Iterable[Reading]:
    """Number and size of checkpoints by state, and running deletions."""
    count = {(name,): tally.count for name, tally in state.tallies.items()}
    size = {(name,): tally.size_bytes for name, tally in state.tallies.items()}
    yield Reading("checkpoints", "Checkpoints by state", ("state",), count)
    yield Reading("checkpoint_bytes", "Size of checkpoints as reported", ("state",), size)
    yield Reading("deletions_running", "Tasks that delete checkpoints", (), {(): len(state.deletions)})
