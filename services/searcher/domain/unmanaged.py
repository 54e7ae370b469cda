"""How runs and heartbeats change trials that run outside the cluster."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.events import searcher, trial
from det_contracts.states import TERMINAL
from services.kit.rules import Key
from services.searcher.domain.state import State, Timer, Trial

replace = msgspec.structs.replace


def fold_run_opened(state: State, event: searcher.RunOpened, at: float) -> Iterable[Key]:
    """Its script runs, for the first time or again. An operation that it never answered is open again."""
    stored_trial = state.trials[event.trial_id]
    reopened = replace(
        stored_trial,
        state="ACTIVE",
        run=event.run,
        # Only started again by hand, so each run but the first is a restart, without a limit.
        restarts=event.run - 1,
        patience_s=event.patience_s,
        closed=False,
        overdue=False,
        heard=False,
        early=None,
        # Why an earlier run was stopped says nothing about this one.
        reason="",
    )
    yield from state.put_trial(reopened)
    yield from state.put_timer(stored_trial.id, Timer(event.run, at + event.patience_s))


def fold_heartbeat(state: State, event: trial.Heartbeat, at: float) -> Iterable[Key]:
    """Its script is alive, even if it was declared lost."""
    stored_trial = state.trials.get(event.trial_id)
    if stored_trial is None or stored_trial.run != event.run or not stored_trial.patience_s:
        return
    if stored_trial.state not in TERMINAL:
        yield from state.put_timer(stored_trial.id, Timer(stored_trial.run, at + stored_trial.patience_s))
    elif is_lost(stored_trial):
        yield from state.put_trial(replace(stored_trial, heard=True))


def is_lost(stored_trial: Trial) -> bool:
    """Whether a trial ended only because its script was silent, and so may be heard again."""
    return stored_trial.patience_s > 0 and stored_trial.overdue and stored_trial.state == "ERROR"
