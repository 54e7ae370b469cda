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
    known = state.trials[event.trial_id]
    reopened = replace(
        known,
        state="ACTIVE",
        run=event.run,
        # Only started again by hand, so each run but the first is a restart, without a limit.
        restarts=event.run - 1,
        patience_s=event.patience_s,
        closed=False,
        overdue=False,
        heard=False,
        early=None,
    )
    yield from state.put_trial(reopened)
    yield from state.put_timer(known.id, Timer(event.run, at + event.patience_s))


def fold_heartbeat(state: State, event: trial.Heartbeat, at: float) -> Iterable[Key]:
    """Its script is alive, even if it was declared lost."""
    known = state.trials.get(event.trial_id)
    if known is None or known.run != event.run or not known.patience_s:
        return
    if known.state not in TERMINAL:
        yield from state.put_timer(known.id, Timer(known.run, at + known.patience_s))
    elif is_lost(known):
        yield from state.put_trial(replace(known, heard=True))


def is_lost(known: Trial) -> bool:
    """Whether a trial ended only because its script was silent, and so may be heard again."""
    return known.patience_s > 0 and known.overdue and known.state == "ERROR"
