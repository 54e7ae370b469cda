"""The catalogue's records. All are frozen: an event replaces a record.

Times are seconds since the epoch, UTC, as in the log's envelopes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from det_contracts.context import Context
from det_contracts.events.gateway import SourceKind
from det_contracts.events.scheduler import Outcome, OwnKind, Part, TaskKind
from det_contracts.events.worker import Limit, Slot
from det_contracts.states import AllocationState
from det_contracts.states import State as Life
from services.catalogue.domain.small_records import DeletedExperiment, Switch, TaskOwner
from services.kit.rules import derived
from services.kit.sorted_keys import SortedKeys
from services.people.domain.state import People

Phase = Literal["", "QUEUED", "RUNNING"]
"""What an ACTIVE trial is doing; empty if it is neither waiting for slots nor running."""
CheckpointState = Literal["COMPLETED", "PARTIALLY_DELETED", "DELETED", "ERROR"]


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """The submitted configuration and code. It never changes, so it is stored apart from what does."""

    config: dict[str, Any]
    original_config: str
    context: Context | None


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """One submitted configuration, and its progress."""

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
    """Whether its trials run outside the cluster."""
    created_at: float
    ended_at: float | None = None
    state: Life = "PAUSED"
    reason: str = ""
    """The reason for the current state."""
    archived: bool = False
    notes: str = ""
    changes: dict[str, Any] = {}
    """Later changes to the configuration, by dotted field."""
    trials: int = 0
    """The number of trials."""
    first_trial: int | None = None
    queued: int = 0
    """The number of allocations waiting for slots or for their processes to start."""
    running: int = 0
    """The number of allocations with a running process."""
    running_slots: int = 0
    """Their slots."""
    counted_at: float = 0.0
    """When that number last changed. Until then the next two are summed up; see `running_time`."""
    past_running_s: float = 0.0
    past_slot_s: float = 0.0
    best_trial: int | None = None
    best_metric: float | None = None
    checkpoints: int = 0
    """The number of checkpoints in the storage."""
    checkpoint_bytes: int = 0
    searcher: str = ""
    hyperparameters: str = ""
    """The configured hyperparameters as JSON; lists need them even when the submission is paged out."""
    point: str = ""
    """The best or only trial's hyperparameters as JSON, for the same reason."""


class Validation(msgspec.Struct, frozen=True):
    """A validation with a finite searcher metric."""

    trial_id: int
    run: int
    steps: int
    metric: float
    at: float


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the search space, over all its runs."""

    id: int
    experiment_id: int
    request_id: str
    task_id: str
    seed: int
    hparams: dict[str, Any]
    created_at: float
    ended_at: float | None = None
    own: Life = "ACTIVE"
    """The trial's own state: ACTIVE until it is stopped or ends."""
    state: Life
    """The more severe of the trial's own state and its experiment's."""
    phase: Phase = ""
    reason: str = ""
    """The reason for the current state."""
    run: int = 0
    allocation_id: str | None = None
    """The allocation of the current run."""
    restarts: int = 0
    runner_state: str = ""
    warm_start: str | None = None
    """The checkpoint of another trial from which the first run started."""
    steps: int = 0
    """The highest step of any validation or checkpoint."""
    best: Validation | None = None
    latest: Validation | None = None
    stored: int = 0
    """The number of checkpoints ever stored."""
    checkpoints: int = 0
    checkpoint_bytes: int = 0
    settled: bool = False
    """Whether all its reports have been judged."""
    answered: int = 0
    """The newest operation whose completion the search method has answered."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A stored checkpoint."""

    uuid: str
    trial_id: int
    experiment_id: int
    task_id: str
    allocation_id: str
    at: float
    number: int
    """The number of the checkpoint in its trial, from 1, in the order they were stored."""
    steps: int
    resources: dict[str, int]
    metadata: dict[str, Any]
    state: CheckpointState = "COMPLETED"
    going: bool = False
    """Whether a task is deleting it."""
    metric: float | None = None
    """The searcher metric at the same step, if any."""


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
    """Workers on which its processes have started."""
    asked_to_leave: bool = False
    outcome: Outcome | None = None
    reason: str = ""
    task_owner: TaskOwner | None = None
    """Set when its task is forgotten or deleted. Only reports on past use show it from then on."""


class Live(msgspec.Struct, frozen=True):
    """Marks an allocation that has not ended. Serves as an index, as most allocations have."""

    experiment_id: int


class OwnTask(msgspec.Struct, frozen=True, kw_only=True):
    """A command, TensorBoard, notebook or shell."""

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
    """The `host:port` where it serves HTTP."""
    account: str = ""
    """For a shell: the account to log in as."""


class Share(msgspec.Struct, frozen=True):
    """The data that a member of an allocation contributed to an all-gather."""

    request_id: str
    data: Any


class Gathering(msgspec.Struct, frozen=True):
    """The successive all-gathers of a live allocation, each with as many shares as peers."""

    peers: int
    joined: int = 0
    """The number of shares so far. They are numbered from 1."""
    kept_from: int = 1
    """Number of the first share still stored. Those of the last complete all-gather and the current one are.
    """
    size_bytes: int = 0
    """Size of all shares so far."""
    round_bytes: int = 0
    """Size of the current all-gather's shares; 0 once it is complete."""
    kept_bytes: int = 0


class Gathered(msgspec.Struct, frozen=True):
    """Total size of all stored shares."""

    size_bytes: int = 0


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A connected worker, or one that left or was lost."""

    id: str
    instance: str = ""
    """Id of the worker's folder. With the host, it distinguishes workers that use the same id."""
    host: str = ""
    session: str
    sessions: tuple[str, ...] = ()
    """Those of the newest registrations under its id; see `remember_session`."""
    pool: str
    address: str
    version: str
    slots: tuple[Slot, ...]
    launcher: str = "process"
    """What runs its tasks: `process`, or the name of the container engine."""
    limits: tuple[Limit, ...] = ()
    """What each run on it may use. Empty for a worker of an earlier version."""
    registered_at: float
    switch: Switch = Switch()
    slot_switches: dict[int, Switch] = {}
    """By slot id. Slots without an entry are enabled."""
    gone_at: float | None = None
    """Set if the worker is away."""
    gone_why: str = ""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A named series of checkpoints."""

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
    """The number of versions."""


class ModelVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint registered under a number in a model."""

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


class TrialSource(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint that a trial judges or trains further."""

    trial_id: int
    checkpoint: str
    kind: SourceKind
    model_id: int | None = None
    version: int | None = None
    """The number of the model's version, if the checkpoint was used as one."""


@dataclass
class State(People):
    """Everything behind lists and pages, including people and places."""

    submissions: dict[int, Submission] = field(default_factory=dict)
    experiments: dict[int, Experiment] = field(default_factory=dict)
    deleted_experiments: dict[int, DeletedExperiment] = field(default_factory=dict)
    """Those of which runs are left."""
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
    """One record under "all"."""
    workers: dict[str, Worker] = field(default_factory=dict)
    away: dict[str, Worker] = field(default_factory=dict)
    """Workers that left or were lost; their switches apply when they return."""
    models: dict[int, Model] = field(default_factory=dict)
    versions: dict[int, ModelVersion] = field(default_factory=dict)
    sources: dict[str, TrialSource] = field(default_factory=dict)
    """By `source_key`."""

    trials_of: SortedKeys = derived()  # noqa: RUF009
    """(experiment, trial)"""
    open_trials: SortedKeys = derived()  # noqa: RUF009
    """(experiment, trial that has not ended)."""
    ranked_trials: SortedKeys = derived()  # noqa: RUF009
    """(experiment, best metric, trial). Metrics are signed so that smaller is better."""
    ranked_validations: SortedKeys = derived()  # noqa: RUF009
    """(trial, metric, run, steps) of every validation, with metrics signed likewise."""
    validation_steps: SortedKeys = derived()  # noqa: RUF009
    """(trial, run, steps) of every validation."""
    checkpoints_of: SortedKeys = derived()  # noqa: RUF009
    """(trial, number, checkpoint)"""
    checkpoints_at: SortedKeys = derived()  # noqa: RUF009
    """(trial, steps, number, checkpoint)"""
    runs_without_trial: SortedKeys = derived()  # noqa: RUF009
    """(experiment, allocation that belongs to no trial)."""
    runs_of: SortedKeys = derived()  # noqa: RUF009
    """(experiment, allocation)"""
    live_of: SortedKeys = derived()  # noqa: RUF009
    """(experiment, live allocation)"""
    versions_of: SortedKeys = derived()  # noqa: RUF009
    """(model, number, version)"""
    sources_of_trial: SortedKeys = derived()  # noqa: RUF009
    """(trial, source)"""
    trials_using: SortedKeys = derived()  # noqa: RUF009
    """(checkpoint, trial)"""
    task_trials: dict[str, int] = derived()  # noqa: RUF009
    """Trial id by task id. A lookup loads the experiment."""
    joined: dict[str, int] = derived()  # noqa: RUF009
    """Number of a share by `request_key`."""

    def __post_init__(self) -> None:
        from services.catalogue.domain.indexes import build_indexes

        super().__post_init__()
        build_indexes(self)

    def load(self, experiment_id: int) -> None:
        """Load all records of an experiment.

        Its bare id is looked up as an allocation's, which never exists.
        """
        self.allocations.get(str(experiment_id))


def source_key(trial_id: int, checkpoint: str) -> str:
    """The key of a trial's use of a checkpoint."""
    return f"{trial_id}@{checkpoint}"


def share_key(allocation_id: str, number: int) -> str:
    """The key of a share of an allocation's all-gathers."""
    return f"{allocation_id}#{number}"


def request_key(allocation_id: str, request_id: str) -> str:
    """The key of a member's request for an all-gather."""
    return f"{allocation_id} {request_id}"


def validation_key(trial_id: int, steps: int) -> str:
    """The key of a trial's validation at a step."""
    return f"{trial_id}@{steps}"
