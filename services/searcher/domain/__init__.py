"""The searcher's state: experiments, their searches and trials, and how each event changes them."""

from services.searcher.domain.fold import evolve
from services.searcher.domain.state import Experiment, State, Trial, effective_state

__all__ = ["Experiment", "State", "Trial", "effective_state", "evolve"]
