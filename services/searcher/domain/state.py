"""The searcher's records. All are frozen: an event replaces a record and never modifies it in place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import msgspec

from det_contracts.events.scheduler import Outcome
from det_contracts.states import OVER, STOPPING, TERMINAL
from det_contracts.states import State as Life
from services.kit.authz.people import People
from services.kit.idempotency import RequestResult, results_by_age
from services.kit.pool_bindings import Bindings
from services.kit.quotas.limits import account_of
from services.kit.quotas.usage import Usage
from services.kit.rules import Key, derived
from services.kit.sorted_keys import SortedKeys
from services.searcher.methods import Search

SEVERITY: tuple[Life, ...] = (
    "ACTIVE",
    "PAUSED",
    "STOPPING_COMPLETED",
    "STOPPING_CANCELED",
    "STOPPING_KILLED",
    "STOPPING_ERROR",
)
"""Stopping states only become more severe (scheduling spec, 8.3)."""
LIVE_STATUSES = ("waiting", "resting", "running", "leaving", "dying")
"""The standings of a trial that has not ended; see `trial_status`."""
END_STATES: tuple[Life, ...] = ("COMPLETED", "CANCELED", "ERROR")
HEARD = "heard"
STATUSES_TO_REVIEW: dict[Life, tuple[str, ...]] = {
    "ACTIVE": ("waiting",),
    "PAUSED": ("running",),
    "STOPPING_COMPLETED": ("waiting", "resting"),
    "STOPPING_CANCELED": ("waiting", "resting", "running"),
    "STOPPING_KILLED": ("waiting", "resting", "running", "leaving"),
    "STOPPING_ERROR": ("waiting", "resting", "running", "leaving"),
}
"""State of an experiment -> the standings of trials for which it calls for something."""
MAX_TRIALS_PER_PASS = 200
"""Number of an experiment's trials that are called or forgotten at once; the next ones follow."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """A submitted configuration, without the parts that no decision depends on."""

    id: int
    state: Life = "PAUSED"
    user: str
    slots: int
    pool: str
    priority: int
    max_restarts: int
    source_checkpoint: str | None
    shutdown: Life | None = None
    """The stopping state that the search method's Shutdown leads to."""
    fault: str = ""
    """Why the search method failed."""
    forced: bool = False
    """A user wants all its runs killed, whatever state it is heading for."""
    archived: bool = False
    unmanaged: bool = False
    length: int = 0
    """How far a trial of an unmanaged experiment is to train; 0 if its configuration does not say."""
    emptied: bool | None = None
    """The checkpoint service's answer to its deletion; None before that."""
    request_key: str = ""
    called: tuple[str, int] | None = None
    """Its current state has been made known to trials up to this (standing, id); None: to all."""
    reason: str = ""
    """The reason for its current state."""


class Exit(msgspec.Struct, frozen=True):
    """How a run ended, before it is judged."""

    outcome: Outcome
    exit_code: int | None
    reason: str
    permanent: bool = False
    """Another attempt would fail in the same way."""
    asked_to_leave: bool = True


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the search, over all its runs."""

    id: int
    experiment_id: int
    request_id: str
    task_id: str
    seed: int
    hparams: dict[str, Any]
    announced: bool = False
    """Whether `TrialCreated` is in the log.

    The `announced` fields below likewise say what events have announced.
    """
    state: Life = "ACTIVE"
    """Its own state: ACTIVE until a user stops it or it ends. See `effective_state`."""

    seq: int = 0
    """Number of the method's last operation; 0 before the first."""
    length: int = 0
    announced_seq: int = 0
    complete: bool = True
    """Whether operation `seq` is complete."""
    idled_seq: int = 0
    """The last operation that was answered with "nothing for now"."""
    closed: bool = False
    """The method will request nothing more."""

    run: int = 0
    allocation_id: str | None = None
    """The allocation of the current run."""
    stop_sent: int = 0
    """What the current run was told: 0 nothing, 1 exit, 2 die."""
    acknowledged: bool = False
    """The script said that its coming exit is intended."""
    made_progress: bool = False
    """The current run completed an operation or stored a checkpoint."""
    early: str | None = None
    """The early exit that the script reported in the current run."""
    overdue: bool = False
    """It gave up and did not exit in time; for an unmanaged trial: it went silent."""
    exit: Exit | None = None
    """The end of a run that is not judged yet."""
    restarts: int = 0

    source: str | None = None
    """The parent's checkpoint that it starts from; None: the experiment's, if any."""
    checkpoint: str | None = None
    steps_completed: int = 0
    recent_checkpoints: tuple[str, ...] = ()
    """The newest checkpoints that it stored, `checkpoint` last."""
    reason: str = ""
    """Why a user stopped this trial."""

    patience_s: float = 0.0
    """Silence after which an unmanaged run is declared lost, in seconds; 0 for managed trials."""
    heard: bool = False
    """An unmanaged run that was declared lost has sent a heartbeat."""
    units: float = 0.0
    """How far an unmanaged trial has trained; for others the search knows."""


class Timer(msgspec.Struct, frozen=True):
    """When a run that gave up must have exited, or an unmanaged one must have been heard."""

    run: int
    due_at: float


class OpenTask(msgspec.Struct, frozen=True):
    """A user's own task that has not ended, with the number that represents it among experiments."""

    owner: int


class Totals(msgspec.Struct, frozen=True):
    """How many ids have been assigned."""

    experiments: int = 0
    trials: int = 0


class Tally(msgspec.Struct, frozen=True):
    """A count."""

    count: int


class Named(msgspec.Struct, frozen=True):
    """The id that a text refers to: a task's trial, or an idempotency key's experiment."""

    id: int


@dataclass
class State(People, Bindings):
    """Everything that the searcher folds from the log."""

    experiments: dict[int, Experiment] = field(default_factory=dict)
    searches: dict[int, Search] = field(default_factory=dict)
    trials: dict[int, Trial] = field(default_factory=dict)
    tasks: dict[str, Named] = field(default_factory=dict)
    timers: dict[int, Timer] = field(default_factory=dict)
    """By trial id."""
    request_keys: dict[str, Named] = field(default_factory=dict)
    creations: dict[str, RequestResult] = field(default_factory=dict)
    totals: dict[str, Totals] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)
    """By kind ("experiments" or "trials") and state, as in "trials COMPLETED"."""
    open_tasks: dict[str, OpenTask] = field(default_factory=dict)
    trials_by_status: SortedKeys = derived()  # noqa: RUF009
    """(experiment, standing, trial) for every loaded trial, once"""
    made_at: SortedKeys = derived()  # noqa: RUF009
    """(time, request id) for every creation"""
    exit_deadlines: SortedKeys = derived()  # noqa: RUF009
    """(due time, trial) for every timer of a trial that runs on the cluster"""
    silence_deadlines: SortedKeys = derived()  # noqa: RUF009
    """(due time, trial): when each trial that runs elsewhere must have been heard"""
    open_jobs: Usage = derived()  # noqa: RUF009
    """Jobs that have not ended: experiments and tasks, by number"""

    def __post_init__(self) -> None:
        self.made_at = results_by_age(self.creations)
        self.open_jobs = Usage()
        for experiment in self.experiments.values():
            self.update_open_jobs(experiment)
        for task in self.open_tasks.values():
            self.open_jobs.set(task.owner, account_of(self, task.owner), 1)
        self.trials_by_status = SortedKeys(_status_key(trial) for trial in self.trials.values())
        self.exit_deadlines, self.silence_deadlines = SortedKeys(), SortedKeys()
        for id, timer in self.timers.items():
            self._timer_index(id).add(timer.due_at, id)

    def _update_tallies(self, name: str, before: Life | None, now: Life | None) -> Iterable[Key]:
        for state, change in ((before, -1), (now, 1)) if before != now else ():
            if state is not None:
                key = f"{name} {state}"
                tally = self.tallies.get(key, Tally(0))
                self.tallies[key] = Tally(tally.count + change)
                yield "tallies", key

    def put_experiment(self, changed: Experiment) -> Iterable[Key]:
        """Store an experiment."""
        previous_experiment = self.experiments.get(changed.id)
        yield from self._update_tallies(
            "experiments",
            previous_experiment.state if previous_experiment is not None else None,
            changed.state,
        )
        self.update_open_jobs(changed)
        self.experiments[changed.id] = changed
        yield "experiments", changed.id

    def drop_experiment(self, id: int) -> Iterable[Key]:
        """Forget an experiment whose trials are all forgotten."""
        yield from self._update_tallies("experiments", self.experiments.pop(id).state, None)
        self.open_jobs.remove(id)
        yield "experiments", id

    def update_open_jobs(self, experiment: Experiment) -> None:
        """Count it among its owner's jobs until it has ended."""
        if experiment.unmanaged or experiment.state in OVER:
            self.open_jobs.remove(experiment.id)
        else:
            self.open_jobs.set(experiment.id, account_of(self, experiment.id), 1)

    def put_trial(self, changed: Trial) -> Iterable[Key]:
        """Store a trial. If it was called and its standing changed, the next one is called."""
        return self._store_trial(self.trials[changed.id], changed)

    def insert_trial(self, fresh: Trial) -> Iterable[Key]:
        """Store a new trial, without looking for an existing one."""
        return self._store_trial(None, fresh)

    def _store_trial(self, previous_trial: Trial | None, changed: Trial) -> Iterable[Key]:
        self.trials[changed.id] = changed
        yield "trials", changed.id
        yield from self._update_tallies(
            "trials", previous_trial.state if previous_trial is not None else None, changed.state
        )
        before, now = (
            _status_key(previous_trial) if previous_trial is not None else None,
            _status_key(changed),
        )
        if before != now:
            self.trials_by_status.swap(before, now)
            yield from self._review_next(changed.experiment_id, 1)

    def drop_trial(self, id: int) -> Iterable[Key]:
        """Forget a trial."""
        # First, because the record determines where its timer is.
        timers = tuple(self.drop_timer(id))
        trial = self.trials.pop(id)
        yield from self._update_tallies("trials", trial.state, None)
        self.trials_by_status.discard(*_status_key(trial))
        del self.tasks[trial.task_id]
        yield "trials", id
        yield "tasks", trial.task_id
        yield from timers

    def review_trials(self, experiment_id: int) -> Iterable[Key]:
        """Review the trials for which an experiment's new state calls for something, a few at a time."""
        return self._review_next(experiment_id, MAX_TRIALS_PER_PASS, from_start=True)

    def _review_next(self, experiment_id: int, count: int, *, from_start: bool = False) -> Iterable[Key]:
        experiment = self.experiments[experiment_id]
        if experiment.called is None and not from_start:
            return
        after = None if from_start else experiment.called
        batch = list(islice(self._trials_to_review(experiment, after), count))
        # A full portion means that there may be more; each of its trials that changes has the next one
        # reviewed.
        last = (batch[-1][1], batch[-1][2]) if len(batch) == count else None
        if last != experiment.called:
            yield from self.put_experiment(msgspec.structs.replace(experiment, called=last))
        for _, _, id in batch:
            yield "trials", id

    def _trials_to_review(
        self, experiment: Experiment, after: tuple[str, int] | None
    ) -> Iterator[tuple[Any, ...]]:
        """The places of trials that are to be called after the last one that was."""
        # Its trials need no slots, so being active asks nothing of them.
        if experiment.unmanaged and experiment.state == "ACTIVE":
            return iter(())
        state: Life = (
            "STOPPING_KILLED" if experiment.forced and experiment.state in STOPPING else experiment.state
        )
        statuses = STATUSES_TO_REVIEW.get(state, ())
        if after is None or after[0] not in statuses:
            return chain.from_iterable(
                self.trials_by_status.scan(experiment.id, status) for status in statuses
            )
        first_status, *later_statuses = statuses[statuses.index(after[0]) :]
        rest = (self.trials_by_status.scan(experiment.id, status) for status in later_statuses)
        return chain(self.trials_by_status.scan(experiment.id, first_status, after=after[1]), *rest)

    def trials_of(self, experiment_id: int, *statuses: str) -> Iterator[Trial]:
        """The trials of an experiment with these standings, by id within each. All without `statuses`."""
        keys: list[tuple[Any, ...]] = [(experiment_id, status) for status in statuses] or [(experiment_id,)]
        return (self.trials[id] for key in keys for id in self.trials_by_status.ids(*key))

    def status_key(self, trial_id: int) -> tuple[int, str, int]:
        """A trial's place in `trials_by_status`."""
        return _status_key(self.trials[trial_id])

    def has_live_trials(self, experiment_id: int) -> bool:
        """Whether a trial of an experiment has not ended."""
        return any(self.trials_by_status.first(experiment_id, status) for status in LIVE_STATUSES)

    def put_timer(self, trial_id: int, timer: Timer) -> Iterable[Key]:
        """Set the timer of a trial, replacing any earlier one."""
        yield from self.drop_timer(trial_id)
        self._timer_index(trial_id).add(timer.due_at, trial_id)
        self.timers[trial_id] = timer
        yield "timers", trial_id

    def drop_timer(self, trial_id: int) -> Iterable[Key]:
        """Drop the timer of a trial."""
        timer = self.timers.pop(trial_id, None)
        if timer is not None:
            self._timer_index(trial_id).discard(timer.due_at, trial_id)
            yield "timers", trial_id

    def _timer_index(self, trial_id: int) -> SortedKeys:
        """The index that holds a trial's timer. A trial's patience does not change after its first run."""
        return self.silence_deadlines if self.trials[trial_id].patience_s else self.exit_deadlines


def trial_status(trial: Trial) -> str:
    """One word that determines what the experiment's state calls for.

    A live trial is "waiting" for slots, "resting" while no operation is open, or "running" until it is told
    to exit ("leaving") or to die ("dying"). Otherwise it is the trial's state, or "heard" if it had been
    declared lost.
    """
    if trial.state in TERMINAL:
        return HEARD if trial.heard else trial.state
    if trial.allocation_id is not None:
        return ("running", "leaving", "dying")[trial.stop_sent]
    return "resting" if trial.complete else "waiting"


def _status_key(trial: Trial) -> tuple[int, str, int]:
    return trial.experiment_id, trial_status(trial), trial.id


def effective_state(experiment: Experiment, trial: Trial) -> Life:
    """A trial's overall state: the more severe of its own state and its experiment's."""
    if trial.state in TERMINAL:
        return trial.state
    if experiment.state in TERMINAL:
        return "STOPPING_KILLED" if experiment.state == "CANCELED" else "STOPPING_ERROR"
    return max(trial.state, experiment.state, key=SEVERITY.index)


def is_stopping(state: Life) -> bool:
    """Whether nothing new may start in this state."""
    return state in STOPPING or state in OVER
