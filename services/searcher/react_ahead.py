"""Whether what a command calls for may be in the command's batch (decision 91)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from det_contracts.states import TERMINAL
from services.kit.roots import get_loaded
from services.searcher.domain import State, Trial
from services.searcher.domain.state import SEVERITY, Tally

_LIVE = [f"trials {state}" for state in SEVERITY if state not in TERMINAL]


def may_react_ahead(state: State, predicted: State, events: Sequence[Any]) -> bool:
    """Whether events that the predicted state calls for hold, whatever is stored before their batch.

    A trial gets its id in the fold. Until the batch is stored, a script may complete an operation, and its
    search open a trial, which then has the id that was predicted for a trial of this batch. Nobody could fold
    the batch. So where trials are live, events may only be about trials that the commands leave as they are.
    """
    return not _has_live_trials(state) or all(_is_certain(state, predicted, event) for event in events)


def _has_live_trials(state: State) -> bool:
    return any(state.tallies.get(name, Tally(0)).count for name in _LIVE)


def _is_certain(state: State, predicted: State, event: Any) -> bool:
    trial_id = getattr(event, "trial_id", None)
    if trial_id is None:
        return True
    # If it exists it is loaded, since the prediction has looked at it; a new one must not be looked for.
    trial = get_loaded(state.trials, trial_id)
    return trial is not None and _operation(trial) == _operation(predicted.trials[trial_id])


def _operation(trial: Trial) -> tuple[str, int, int]:
    """What the search asks of it."""
    return trial.request_id, trial.seq, trial.length
