"""The catalogue's records. All frozen: an event replaces a record, nothing is changed in place.

Times are seconds since the epoch, UTC, as the log's envelopes give them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from det_contracts.context import Context
from det_contracts.events.scheduler import Outcome, OwnKind, Part, TaskKind
from det_contracts.events.worker import Slot
from det_contracts.states import AllocationState
from det_contracts.states import State as Life
from services.kit.rules import derived
from services.kit.sorted_keys import SortedKeys
from services.people.domain.state import People

Phase = Literal["", "QUEUED", "RUNNING"]
"""What something ACTIVE does just now; empty when it waits for nothing and nothing of it runs."""
CheckpointState = Literal["COMPLETED", "PARTIALLY_DELETED", "DELETED", "ERROR"]


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """What was submitted; never changes, so it is kept apart from what does."""

    config: dict[str, Any]
    original_config: str
    context: Context | None


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """One submitted configuration and how it fares."""

    id: int
    user: str
    name: str
    description: str
    labels: tuple[str, ...]
    pool: str
    metric: str
    smaller_is_better: bool
    parent_id: int | None
    project_id: int = 1
    unmanaged: bool = False
    """Its trials run outside of the cluster."""
    created_at: float
    ended_at: float | None = None
    state: Life = "PAUSED"
    reason: str = ""
    """Of its present state."""
    archived: bool = False
    notes: str = ""
    changes: dict[str, Any] = {}
    """What was changed of its configuration since, by dotted field."""
    trials: int = 0
    """How many it has."""
    first_trial: int | None = None
    queued: int = 0
    """Allocations that wait for slots or for their process to start."""
    running: int = 0
    """Allocations whose process has started."""
    best_trial: int | None = None
    best_metric: float | None = None
    checkpoints: int = 0
    """How many lie in the storage."""
    checkpoint_bytes: int = 0
    searcher: str = ""
    hyperparameters: str = ""
    """Those of its configuration, as JSON: lists are filtered and sorted by them long after it has left."""
    point: str = ""
    """Those of the trial that tells of it, likewise: of the best one, or of the only one."""


class Validation(msgspec.Struct, frozen=True):
    """A validation that holds a finite searcher metric."""

    trial_id: int
    run: int
    steps: int
    metric: float
    at: float


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the search, over all its runs."""

    id: int
    experiment_id: int
    request_id: str
    task_id: str
    seed: int
    hparams: dict[str, Any]
    created_at: float
    ended_at: float | None = None
    own: Life = "ACTIVE"
    """Its own state: ACTIVE until a person stops it or it ends."""
    state: Life
    """The more severe of its own state and its experiment's."""
    phase: Phase = ""
    reason: str = ""
    """Of its present state."""
    run: int = 0
    allocation_id: str | None = None
    """Of the present run."""
    restarts: int = 0
    runner_state: str = ""
    warm_start: str | None = None
    """Checkpoint of another trial that the first run started from."""
    steps: int = 0
    """The most steps that a validation or a checkpoint was reported at."""
    best: Validation | None = None
    latest: Validation | None = None
    stored: int = 0
    """Checkpoints that were ever stored."""
    checkpoints: int = 0
    checkpoint_bytes: int = 0
    settled: bool = False
    """No report of it will come any more."""
    answered: int = 0
    """Newest operation whose completion the search has answered."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A saved model."""

    uuid: str
    trial_id: int
    experiment_id: int
    task_id: str
    allocation_id: str
    at: float
    number: int
    """Counts those of its trial from 1, in the order they were stored."""
    steps: int
    resources: dict[str, int]
    metadata: dict[str, Any]
    state: CheckpointState = "COMPLETED"
    going: bool = False
    """A task was asked to delete it, and is not over."""
    metric: float | None = None
    """The searcher metric at the same step, when there was a validation with one."""


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a task."""

    id: str
    task_id: str
    kind: TaskKind
    experiment_id: int
    trial_id: int | None
    run: int
    slots: int
    pool: str
    priority: int
    requested_at: float
    started_at: float | None = None
    ended_at: float | None = None
    state: AllocationState = "PENDING"
    members: tuple[Part, ...] = ()
    there: tuple[str, ...] = ()
    """Workers on which its processes were started."""
    asked_to_leave: bool = False
    outcome: Outcome | None = None
    reason: str = ""


class Live(msgspec.Struct, frozen=True):
    """An allocation that is not over; an index, since most allocations are."""

    experiment_id: int


class OwnTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that somebody started by themselves."""

    id: str
    number: int
    kind: OwnKind
    user: str
    name: str
    config: dict[str, Any]
    workspace_id: int
    priority: int | None
    submitted_at: float
    address: str = ""
    """`host:port` where it answers HTTP."""
    account: str = ""
    """Of a shell: the name that one logs in by."""


class Share(msgspec.Struct, frozen=True):
    """What a member of an allocation gave to an all-gather."""

    request_id: str
    data: Any


class Gathering(msgspec.Struct, frozen=True):
    """All-gathers of a live allocation, one after the other, each of as many shares as it has peers."""

    peers: int
    joined: int = 0
    """Shares so far; they are numbered from 1."""
    kept_from: int = 1
    """Number of the first share that is kept: those of the last whole all-gather, and of the present one."""
    size_bytes: int = 0
    """Of all shares so far."""
    round_bytes: int = 0
    """Of the present all-gather; 0 when it is whole."""
    kept_bytes: int = 0


class Gathered(msgspec.Struct, frozen=True):
    """What is kept of all all-gathers together."""

    size_bytes: int = 0


class Switch(msgspec.Struct, frozen=True):
    """Whether a worker or slot takes work, as a person set it."""

    enabled: bool = True
    draining: bool = False


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A host that offers slots; its record goes when it leaves or is lost."""

    id: str
    instance: str = ""
    """Of its folder; with the host it tells one worker from another of the same id."""
    host: str = ""
    pool: str
    address: str
    version: str
    slots: tuple[Slot, ...]
    launcher: str = "process"
    """What starts its tasks: `process`, or the container engine's name."""
    registered_at: float
    switch: Switch = Switch()
    slot_switches: dict[int, Switch] = {}
    """By slot id; those that are not listed are open."""
    gone_at: float | None = None
    """Of one that is away."""
    gone_why: str = ""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A named line of checkpoints."""

    id: int
    name: str
    user: str
    description: str = ""
    metadata: dict[str, Any] = {}
    labels: tuple[str, ...] = ()
    notes: str = ""
    archived: bool = False
    workspace_id: int = 1
    created_at: float
    changed_at: float
    versions: int = 0
    """How many it has."""


class ModelVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint with a number in a model."""

    id: int
    model_id: int
    number: int
    checkpoint: str
    user: str
    name: str = ""
    comment: str = ""
    notes: str = ""
    metadata: dict[str, Any] = {}
    labels: tuple[str, ...] = ()
    created_at: float
    changed_at: float


@dataclass
class State(People):
    """Everything that lists and pages are made of, people and places included."""

    submissions: dict[int, Submission] = field(default_factory=dict)
    experiments: dict[int, Experiment] = field(default_factory=dict)
    trials: dict[int, Trial] = field(default_factory=dict)
    validations: dict[str, Validation] = field(default_factory=dict)
    """By `validation_key`."""
    checkpoints: dict[str, Checkpoint] = field(default_factory=dict)
    allocations: dict[str, Allocation] = field(default_factory=dict)
    live: dict[str, Live] = field(default_factory=dict)
    """By allocation id."""
    tasks: dict[str, OwnTask] = field(default_factory=dict)
    gatherings: dict[str, Gathering] = field(default_factory=dict)
    """By allocation id."""
    shares: dict[str, Share] = field(default_factory=dict)
    """By `share_key`."""
    gathered: dict[str, Gathered] = field(default_factory=dict)
    """Under "all"."""
    workers: dict[str, Worker] = field(default_factory=dict)
    away: dict[str, Worker] = field(default_factory=dict)
    """Workers that left or were lost, for what was switched on them."""
    models: dict[int, Model] = field(default_factory=dict)
    versions: dict[int, ModelVersion] = field(default_factory=dict)

    trials_of: SortedKeys = derived()  # noqa: RUF009
    """(experiment, trial)"""
    open_trials: SortedKeys = derived()  # noqa: RUF009
    """(experiment, trial that has not ended)"""
    ranked_trials: SortedKeys = derived()  # noqa: RUF009
    """(experiment, best metric, trial); of metrics the smaller ones are the better ones here."""
    ranked: SortedKeys = derived()  # noqa: RUF009
    """(trial, metric, run, steps): every validation, likewise"""
    reached: SortedKeys = derived()  # noqa: RUF009
    """(trial, run, steps): every validation"""
    saved: SortedKeys = derived()  # noqa: RUF009
    """(trial, number, checkpoint)"""
    saved_at: SortedKeys = derived()  # noqa: RUF009
    """(trial, steps, number, checkpoint)"""
    chores: SortedKeys = derived()  # noqa: RUF009
    """(experiment, allocation of a task that is no trial)"""
    runs_of: SortedKeys = derived()  # noqa: RUF009
    """(experiment, allocation)"""
    live_of: SortedKeys = derived()  # noqa: RUF009
    """(experiment, live allocation)"""
    numbers: SortedKeys = derived()  # noqa: RUF009
    """(model, number, version)"""
    task_trials: dict[str, int] = derived()  # noqa: RUF009
    """Trial by its task; looking for one loads its experiment."""
    joined: dict[str, int] = derived()  # noqa: RUF009
    """Number of a share by its allocation and request: see `request_key`."""

    def __post_init__(self) -> None:
        from services.catalogue.domain.indexes import index

        super().__post_init__()
        index(self)

    def load(self, experiment_id: int) -> None:
        """Have all of an experiment loaded, wherever it lies: its number alone is the id of no allocation."""
        self.allocations.get(str(experiment_id))


def share_key(allocation_id: str, number: int) -> str:
    """Where a share of the all-gathers of an allocation is kept."""
    return f"{allocation_id}#{number}"


def request_key(allocation_id: str, request_id: str) -> str:
    """What a member's request for an all-gather is known by."""
    return f"{allocation_id} {request_id}"


def validation_key(trial_id: int, steps: int) -> str:
    """Where the validation of a trial at a step is kept."""
    return f"{trial_id}@{steps}"
