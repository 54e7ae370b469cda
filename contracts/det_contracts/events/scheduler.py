"""What the scheduler decides: who runs where, who yields, and when a run is over."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from det_contracts.codec import event
from det_contracts.context import Context
from det_contracts.events.gateway import AgentUser

TaskKind = Literal["TRIAL", "CHECKPOINT_GC", "COMMAND", "TENSORBOARD", "NOTEBOOK", "SHELL"]
OwnKind = Literal["COMMAND", "TENSORBOARD", "NOTEBOOK", "SHELL"]
"""Tasks that people start by themselves."""
SchedulerType = Literal["fair_share", "priority", "round_robin"]
OnLost = Literal["keep", "fence"]
Outcome = Literal["succeeded", "failed", "killed", "worker_lost", "not_started"]


class Part(msgspec.Struct, frozen=True):
    """An allocation's share of one worker."""

    worker_id: str
    slots: tuple[int, ...]
    """Slot ids on that worker, ascending; empty for a zero-slot task."""
    rank: int
    """0 is the chief."""


ProviderType = Literal["process", "slurm", "kubernetes"]
Phase = Literal["wanted", "queued", "running", "missing", "over"]
"""Where a worker is that a pool asked for, as its engine says: not yet accepted, waiting for a host, running,
no longer listed, or finished for good."""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """How a pool gets workers by itself and gives them back."""

    type: ProviderType
    slots_per_instance: int = 1
    """Slots that one worker of this pool will offer; 1 or more."""
    min_instances: int = 0
    max_instances: int = 5
    max_idle_s: float = 1200.0
    """A worker without work for so long is given back."""
    max_starting_s: float = 1200.0
    """A worker that does not register within this time of its start is given up."""
    notice_s: float = 120.0
    """So long before its host is taken away a worker's tasks are asked to save and leave."""


class PoolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How one pool hands out its slots."""

    scheduler: SchedulerType = "fair_share"
    fitting_policy: Literal["best", "worst"] = "best"
    allow_heterogeneous_fits: bool = False
    preemption: bool = False
    """Whether the priority scheduler may ask others to leave."""
    default_priority: int = 42
    """Of jobs that name none; 1 to 99."""
    max_aux_containers_per_agent: int = 100
    """Zero-slot tasks that may run on one worker at once."""
    on_lost: OnLost = "keep"
    """What becomes of the processes of a worker that is out of touch: `keep` lets them run, and nothing that
    they say counts once their run is given up; `fence` has their host end them before it starts elsewhere."""
    fence_after_s: float = 25.0
    """With `fence`: without contact for so long a host ends what it runs for this pool."""
    provider: Provider | None = None
    """None: the pool has the workers that people start."""


@event("scheduler.task.submitted", key="task_id")
class TaskSubmitted(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody wants a task of their own to run, once."""

    task_id: str
    number: int
    """Counts such tasks from 1; names its job."""
    kind: OwnKind
    user: str
    name: str
    config: dict[str, Any]
    """`entrypoint`, `resources`, `environment`, and what a kind needs."""
    context: Context | None = None
    slots: int
    pool: str
    priority: int | None = None
    workspace_id: int = 1
    agent_user: AgentUser | None = None
    """Who it runs as on the hosts of workers; None: as the worker is told."""
    reason: str


@event("scheduler.task.stop_requested", key="task_id")
class TaskStopRequested(msgspec.Struct, frozen=True):
    """A person wants the task to end at once."""

    task_id: str
    reason: str


@event("scheduler.task.forgotten", key="task_id")
class TaskForgotten(msgspec.Struct, frozen=True):
    """A task that ended long ago leaves all lists, with its run and the lines of its log."""

    task_id: str
    number: int
    """As in `TaskSubmitted`."""
    reason: str


@event("scheduler.task.idled", key="task_id")
class TaskIdled(msgspec.Struct, frozen=True, kw_only=True):
    """A task said that nobody uses it, or that it is used again. Idle for `within_s` on end, it is ended."""

    task_id: str
    idle: bool
    within_s: float
    """From its configuration; counted from the time of this event."""
    reason: str


@event("scheduler.allocation.assigned", key="allocation_id")
class AllocationAssigned(msgspec.Struct, frozen=True, kw_only=True):
    """Slots are held for the allocation. Each worker named in `parts` starts its share."""

    allocation_id: str
    task_id: str
    kind: TaskKind
    parts: tuple[Part, ...]
    trial_id: int | None = None
    experiment_id: int
    run: int
    reason: str
    backfilled: bool = False
    """It fills a gap in front of a request of higher priority that does not fit yet."""
    fence_s: float = 0.0
    """Without contact to the cluster for so long its hosts end it by themselves; 0: they let it run."""


@event("scheduler.allocation.daemon_marked", key="allocation_id")
class DaemonMarked(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an allocation serves the others: it is ended when they are over (scheduling spec, 8.4)."""

    allocation_id: str
    rank: int
    """Of the part."""
    reason: str


@event("scheduler.allocation.preempt_requested", key="allocation_id")
class PreemptRequested(msgspec.Struct, frozen=True, kw_only=True):
    """The script is asked to save and leave; it listens. Killed when it has not left `within_s`."""

    allocation_id: str
    reason: str
    wanted_by: str = ""
    """Allocation that its slots are for; empty when a person or the search wants it to leave."""
    within_s: float = 3600.0
    """Counted from the time of this event."""
    deadline_at: float | None = None
    """The deadline itself, in events written before there was `within_s`."""


@event("scheduler.allocation.kill_requested", key="allocation_id")
class KillRequested(msgspec.Struct, frozen=True):
    """Workers end what runs of the allocation, at once."""

    allocation_id: str
    reason: str


@event("scheduler.allocation.ended", key="allocation_id")
class AllocationEnded(msgspec.Struct, frozen=True, kw_only=True):
    """Every member is gone and the slots are free. The searcher judges what it means for the trial."""

    allocation_id: str
    kind: TaskKind
    trial_id: int | None = None
    run: int
    outcome: Outcome
    exit_code: int | None = None
    reason: str
    permanent: bool = False
    """Another try would meet the same failure. False in older events."""


@event("scheduler.allocation.given_up", key="allocation_id")
class GivenUp(msgspec.Struct, frozen=True):
    """A part whose worker was lost is over: its host had to end it (`fence_s`), and had the time to."""

    allocation_id: str
    worker_id: str
    reason: str


@event("scheduler.worker.lost", key="worker_id")
class WorkerLost(msgspec.Struct, frozen=True):
    """No sign of life for longer than the reconnect wait; what ran there ends as `worker_lost`.

    At once, but where hosts end by themselves what is out of touch: there as soon as they have had the time.
    """

    worker_id: str
    reason: str


@event("scheduler.worker.forgotten", key="worker_id")
class WorkerForgotten(msgspec.Struct, frozen=True):
    """A worker that left or was lost long ago leaves all lists. If it comes back, it is a new one."""

    worker_id: str
    reason: str


@event("scheduler.allocation.deadline_passed", key="allocation_id")
class DeadlinePassed(msgspec.Struct, frozen=True):
    """A due time that the scheduler's state holds has come: time as a fact of the log."""

    allocation_id: str
    due_at: float


@event("scheduler.trial.pause_over", key="trial_id")
class PauseOver(msgspec.Struct, frozen=True):
    """A run of the trial is over, and nobody said in time what becomes of it: others may have its share."""

    trial_id: int
    due_at: float


@event("scheduler.pool.configured", key="pool")
class PoolConfigured(msgspec.Struct, frozen=True, kw_only=True):
    """A resource pool's settings, from the cluster's configuration (scheduling spec, section 7)."""

    pool: str
    description: str = ""
    settings: PoolSettings
    reason: str


@event("scheduler.worker.switched", key="worker_id")
class WorkerSwitched(msgspec.Struct, frozen=True, kw_only=True):
    """A person opened or closed a worker. Closed without `draining`: what runs there is killed."""

    worker_id: str
    enabled: bool
    draining: bool = False
    """Closed for new work only; what runs may come to its end."""
    reason: str


@event("scheduler.worker.wanted", key="worker_id")
class WorkerWanted(msgspec.Struct, frozen=True, kw_only=True):
    """A pool is to get another worker. The provisioner hears it and asks the pool's engine for one."""

    worker_id: str
    """The new worker registers under this id, which is never used again."""
    pool: str
    number: int
    """Counts the workers that the pool has asked for, from 1."""
    reason: str


@event("scheduler.worker.provision_reported", key="worker_id")
class ProvisionReported(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine of a pool says of a worker that was asked for; stated when it says something new."""

    worker_id: str
    pool: str
    phase: Phase
    detail: str = ""
    """In the engine's words: the number of its job, what it waits for, why it ended."""
    ends_at: float = 0.0
    """When the engine will take the host away, in seconds since the epoch; 0: no such time is known."""
    reason: str


@event("scheduler.worker.time_passed", key="worker_id")
class WorkerTimePassed(msgspec.Struct, frozen=True):
    """A due time of a worker that was asked for has come: it is idle, late, gone, or its host's time ends."""

    worker_id: str
    due_at: float


@event("scheduler.worker.released", key="worker_id")
class WorkerReleased(msgspec.Struct, frozen=True, kw_only=True):
    """A worker is given back: it gets no more work, and its engine ends it once it is empty.

    What still runs on it is asked to save and leave.
    """

    worker_id: str
    pool: str
    reason: str
    failed: bool = False
    """It never did what it was asked for: the pool waits before it asks again."""


@event("scheduler.worker.dismissed", key="worker_id")
class WorkerDismissed(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is left of a worker that was asked for: neither its engine nor the cluster knows it."""

    worker_id: str
    pool: str
    reason: str
    failed: bool = False
    """It ended before it had ever registered: the pool waits before it asks again."""


@event("scheduler.pool.engine_reported", key="pool")
class EngineReported(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the engine of a pool can be asked; stated when that changes."""

    pool: str
    problem: str
    """Why it cannot be asked, in its own words; empty: it answers."""
    reason: str


@event("scheduler.pool.retry_due", key="pool")
class RetryDue(msgspec.Struct, frozen=True):
    """A pool has waited long enough after workers that failed to start, and may ask for others."""

    pool: str
    due_at: float


@event("scheduler.worker.slot_switched", key="worker_id")
class SlotSwitched(msgspec.Struct, frozen=True, kw_only=True):
    """The same for one slot of a worker."""

    worker_id: str
    slot_id: int
    enabled: bool
    draining: bool = False
    reason: str


@event("scheduler.job.changed", key="experiment_id")
class JobChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A job's place in the queue and its share, whole, after a change by a person."""

    experiment_id: int
    pool: str
    priority: int
    """1 to 99, smaller first."""
    weight: float
    """Relative share under fair share, above 0."""
    max_slots: int | None
    """Most slots of all its allocations together; None is no limit."""
    position: str
    """Decimal number; smaller goes first. Starts as the submission time in microseconds."""
    reason: str


@event("scheduler.creation.kept", key="request_id")
class CreationKept(msgspec.Struct, frozen=True):
    """Something was made for a request with an `Idempotency-Key`; the same request again leads to it."""

    request_id: str
    """Made of who asked and of the key."""
    key: str
    digest: str
    """Of all that was asked for; another request with the same key is refused."""
    value: Any
    """What the command was answered: the id of what was made."""
    reason: str
