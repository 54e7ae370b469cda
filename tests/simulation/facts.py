"""The ledger's records of experiments, trials, allocations, workers and reports."""

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from det_contracts.states import OVER

NEVER = math.inf


class Seen(NamedTuple):
    """What an owner knew when it decided: the log up to a position, and its own batch from another on."""

    through: int
    batch: float = NEVER

    def has(self, position):
        return position <= self.through or self.batch <= position < NEVER


class History:
    """The values of one field over the log."""

    def __init__(self, value, position=0):
        self._positions = [position]
        self._values = [value]

    def add(self, position, value):
        self._positions.append(position)
        self._values.append(value)

    def at(self, position):
        return self._values[bisect_right(self._positions, position) - 1]

    def known_to(self, knowledge):
        """The newest value that was seen."""
        both = zip(reversed(self._positions), reversed(self._values), strict=True)
        return next(value for position, value in both if knowledge.has(position))

    def since(self, first, last):
        """The values set after the first position, up to the last."""
        return self._values[bisect_right(self._positions, first) : bisect_right(self._positions, last)]

    @property
    def now(self):
        return self._values[-1]


@dataclass
class Experiment:
    id: int
    slots: int
    max_restarts: int
    search: Any
    state: History
    trials: dict = field(default_factory=dict)
    """Request id to trial id."""
    operations: dict = field(default_factory=dict)
    """Request id to (sequence number, length) over time."""
    closed: dict = field(default_factory=dict)
    """Request id to the position at which the method closed it."""
    shutdown: str = ""
    """The state that the end of the search leads to."""
    fault: bool = False
    pool: Any = None
    max_slots: Any = None
    created: int = 0
    user: str = ""


@dataclass
class OwnTask:
    """A task that a user started, outside of any experiment."""

    id: int
    """Of its job: negative."""
    task_id: str
    pool: Any
    max_slots: Any
    user: str
    stopped: float = NEVER
    """Position of the request to stop it."""


@dataclass
class Trial:
    id: int
    experiment: Experiment
    request_id: str
    state: History
    run: int = 0
    live: str = ""
    """Allocation of the current run; empty if there is none."""
    exit: Any = None
    """`AllocationEnded` that awaits its verdict."""
    restarts: int = 0
    acked: dict = field(default_factory=dict)
    """Run to the position of the acknowledgement."""
    early: dict = field(default_factory=dict)
    completed: dict = field(default_factory=dict)
    """Sequence number to the position of the completion that counts."""
    announced: int = 0
    idled: int = 0
    checkpoints: list = field(default_factory=list)

    @property
    def over(self):
        return self.state.now in OVER

    def operations(self):
        return self.experiment.operations.get(self.request_id)

    def seen_complete(self, knowledge):
        operations = self.operations()
        seq = operations.known_to(knowledge)[0] if operations else 0
        return seq == 0 or knowledge.has(self.completed.get(seq, NEVER))

    def seen_closed(self, knowledge):
        return knowledge.has(self.experiment.closed.get(self.request_id, NEVER))


@dataclass
class Allocation:
    id: str
    kind: str
    experiment_id: int
    trial_id: int | None
    run: int
    slots: int
    requested: int
    pool: str = ""
    """Of a task that belongs to no job."""
    parts: tuple = ()
    assigned: float = NEVER
    exits: dict = field(default_factory=dict)
    """Worker to exit code."""
    lost: dict = field(default_factory=dict)
    fenced: bool = False
    cut_off: set = field(default_factory=set)
    """Workers that are lost and may still run it."""
    started: dict = field(default_factory=dict)
    preempted: float = NEVER
    killed: float = NEVER
    outcome: str = ""

    def gone(self, worker_id):
        return worker_id in self.exits or worker_id in self.lost


@dataclass(frozen=True)
class Worker:
    id: str
    session: str
    pool: str
    slots: tuple
    instance: str = ""
    presence: str = "here"


class Reports:
    """Which reports count: those of the newest reporting run, each batch once and each step count once."""

    def __init__(self):
        self._runs = {}
        self._batches = set()
        self.validated = {}
        """Trial to (run, steps) of its accepted validations."""

    def take(self, batch):
        key = batch.trial_id, batch.run, batch.number
        if batch.run < self._runs.get(batch.trial_id, 0) or key in self._batches:
            return
        self._batches.add(key)
        self._runs[batch.trial_id] = batch.run
        for series in batch.series:
            if series.group == "validation":
                validations = self.validated.setdefault(batch.trial_id, set())
                validations |= {(batch.run, steps) for steps in series.steps}
