"""The searcher's records. All frozen: an event replaces a record, nothing is changed in place."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import msgspec

from det_contracts.events.scheduler import Outcome
from det_contracts.states import OVER, STOPPING, TERMINAL
from det_contracts.states import State as Life
from services.kit.once import Made
from services.kit.rules import derived
from services.searcher.methods import Search

SEVERITY: tuple[Life, ...] = (
    "ACTIVE",
    "PAUSED",
    "STOPPING_COMPLETED",
    "STOPPING_CANCELED",
    "STOPPING_KILLED",
    "STOPPING_ERROR",
)
"""Stopping states only get more severe (scheduling spec, 8.3)."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """One submitted configuration, without the parts that nobody decides by."""

    id: int
    state: Life = "PAUSED"
    user: str
    slots: int
    pool: str
    priority: int
    max_restarts: int
    source_checkpoint: str | None
    shutdown: Life | None = None
    """Where the search method's Shutdown leads to."""
    fault: str = ""
    """What made the search method fail."""
    forced: bool = False
    """A person wants what still runs of it dead, wherever it is heading."""
    archived: bool = False
    unmanaged: bool = False
    length: int = 0
    """How far a trial of an unmanaged one means to train; 0 where its configuration does not say."""
    emptied: bool | None = None
    """What checkpoints answered to its deletion; None before that."""
    reason: str = ""
    """Of its present state."""


class Exit(msgspec.Struct, frozen=True):
    """How a run ended, not judged yet."""

    outcome: Outcome
    exit_code: int | None
    reason: str


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the search, over all its runs."""

    id: int
    experiment_id: int
    request_id: str
    task_id: str
    seed: int
    hparams: dict[str, Any]
    announced: bool = False
    """`TrialCreated` is in the log; likewise below, what the fold knows is announced by an event."""
    state: Life = "ACTIVE"
    """Its own state: ACTIVE until a person stops it or it ends. See `effective_state`."""

    seq: int = 0
    """Number of the operation that the method asked for last; 0 before the first."""
    length: int = 0
    announced_seq: int = 0
    complete: bool = True
    """Nothing of operation `seq` is open."""
    idled_seq: int = 0
    """The last operation that was answered with "nothing for now"."""
    closed: bool = False
    """The method will ask for nothing more."""

    run: int = 0
    allocation_id: str | None = None
    """Of the present run."""
    stop_sent: int = 0
    """What the present run was told: 0 nothing, 1 leave, 2 die."""
    acknowledged: bool = False
    """The script said that its coming exit is meant."""
    early: str | None = None
    """Early exit that the script reported in the present run."""
    overdue: bool = False
    """It gave up, and did not leave in time; of an unmanaged one: nothing was heard of it."""
    exit: Exit | None = None
    """End of a run that waits for its verdict."""
    restarts: int = 0

    source: str | None = None
    """Checkpoint of its parent that it starts from; None: that of the experiment, if any."""
    checkpoint: str | None = None
    steps_completed: int = 0
    reason: str = ""
    """Why a person stopped this one trial."""

    patience_s: float = 0.0
    """Silence after which an unmanaged run is taken for lost; 0 for managed trials."""
    heard: bool = False
    """Taken for lost, an unmanaged run gave a sign of life."""
    units: float = 0.0
    """How far an unmanaged trial is; of others the search knows."""


class Timer(msgspec.Struct, frozen=True):
    """When a run that gave up must have left, or an unmanaged one must have been heard."""

    run: int
    due_at: float


class Totals(msgspec.Struct, frozen=True):
    """How many ids were given out."""

    experiments: int = 0
    trials: int = 0


class Named(msgspec.Struct, frozen=True):
    """What a text leads to: a task to its trial, an idempotency key to its experiment."""

    id: int


@dataclass
class State:
    """Everything that the searcher folds out of the log."""

    experiments: dict[int, Experiment] = field(default_factory=dict)
    searches: dict[int, Search] = field(default_factory=dict)
    trials: dict[int, Trial] = field(default_factory=dict)
    tasks: dict[str, Named] = field(default_factory=dict)
    timers: dict[int, Timer] = field(default_factory=dict)
    """By trial."""
    request_keys: dict[str, Named] = field(default_factory=dict)
    creations: dict[str, Made] = field(default_factory=dict)
    totals: dict[str, Totals] = field(default_factory=dict)
    live: defaultdict[int, dict[int, None]] = derived()  # noqa: RUF009
    """Trials that have not ended, by experiment."""

    def __post_init__(self) -> None:
        self.live = defaultdict(dict)
        for trial in sorted(self.trials.values(), key=lambda trial: trial.id):
            if trial.state not in TERMINAL:
                self.live[trial.experiment_id][trial.id] = None


def effective_state(experiment: Experiment, trial: Trial) -> Life:
    """What a trial is in, all told: the more severe of its own state and its experiment's."""
    if trial.state in TERMINAL:
        return trial.state
    if experiment.state in TERMINAL:
        return "STOPPING_KILLED" if experiment.state == "CANCELED" else "STOPPING_ERROR"
    return max(trial.state, experiment.state, key=SEVERITY.index)


def is_stopping(state: Life) -> bool:
    """Whether nothing new may start in this state."""
    return state in STOPPING or state in OVER
