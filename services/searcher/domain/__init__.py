"""What the searcher knows: experiments, their searches, their trials; and how each event changes that."""

from services.searcher.domain.fold import evolve
from services.searcher.domain.state import Experiment, State, Trial, effective_state

__all__ = ["Experiment", "State", "Trial", "effective_state", "evolve"]
