"""Metrics of the searcher's state, for operators."""

from __future__ import annotations

from collections.abc import Iterable

from services.kit.process_metrics import Reading
from services.searcher.domain import State


def readings(state: State) -> Iterable[Reading]:
    """Number of experiments and trials in each state."""
    for name, what in (("experiments", "Experiments by state"), ("trials", "Trials by state")):
        counted = {
            (key.removeprefix(f"{name} "),): tally.count
            for key, tally in state.tallies.items()
            if key.startswith(f"{name} ") and tally.count
        }
        yield Reading(name, what, ("state",), counted)
