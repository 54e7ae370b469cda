"""What operators see of the searcher's state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from services.kit.measures import Reading
from services.searcher.domain import State


def readings(state: State) -> Iterable[Reading]:
    """How many experiments and trials are in which state."""
    experiments = Counter((one.state,) for one in state.experiments.values())
    yield Reading("experiments", "Experiments by state", ("state",), experiments)
    trials = Counter((one.state,) for one in state.trials.values())
    yield Reading("trials", "Trials by state", ("state",), trials)
