"""Decisions of the scheduler: what runs where, what is preempted, and when a run has ended."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from det_contracts.codec import event
from det_contracts.context import Context
from det_contracts.events.gateway import AgentUser

TaskKind = Literal["TRIAL", "CHECKPOINT_GC", "COMMAND", "TENSORBOARD", "NOTEBOOK", "SHELL"]
OwnKind = Literal["COMMAND", "TENSORBOARD", "NOTEBOOK", "SHELL"]
"""Tasks that users start directly."""
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
"""Phase of a requested worker, as reported by its engine.

Not yet accepted, waiting for a host, running, no longer listed, or ended permanently.
"""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """How a pool obtains workers automatically and gives them back."""

    type: ProviderType
    slots_per_instance: int = 1
    """Slots that one worker of this pool will offer; at least 1."""
    min_instances: int = 0
    max_instances: int = 5
    max_idle_s: float = 1200.0
    """A worker that is idle for this long is given back."""
    max_starting_s: float = 1200.0
    """A worker that does not register within this time of its start is given up."""
    notice_s: float = 120.0
    """How long before its host is taken away a worker's tasks are asked to save and exit."""


class PoolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a pool schedules its slots."""

    scheduler: SchedulerType = "fair_share"
    fitting_policy: Literal["best", "worst"] = "best"
    allow_heterogeneous_fits: bool = False
    preemption: bool = False
    """Whether the priority scheduler may preempt other jobs."""
    default_priority: int = 42
    """Priority of jobs that name none; 1 to 99."""
    max_aux_containers_per_agent: int = 100
    """Maximum number of zero-slot tasks on one worker."""
    on_lost: OnLost = "keep"
    """What happens to the processes of a worker that is out of contact.

    `keep` lets them run, but ignores what they report once their run is given up. `fence` makes their host
    end them before the task starts elsewhere.
    """
    fence_after_s: float = 25.0
    """With `fence`: after this long without contact, a host ends what it runs for this pool."""
    provider: Provider | None = None
    """None: the pool consists of workers that people start."""


@event("scheduler.task.submitted", key="task_id")
class TaskSubmitted(msgspec.Struct, frozen=True, kw_only=True):
    """A user submitted a task to run once."""

    task_id: str
    number: int
    """Counts such tasks from 1; names the job."""
    kind: OwnKind
    user: str
    name: str
    config: dict[str, Any]
    """`entrypoint`, `resources`, `environment`, and fields specific to the kind."""
    context: Context | None = None
    slots: int
    pool: str
    priority: int | None = None
    workspace_id: int = 1
    agent_user: AgentUser | None = None
    """Host user it runs as on workers; None: as the worker is configured."""
    reason: str


@event("scheduler.task.stop_requested", key="task_id")
class TaskStopRequested(msgspec.Struct, frozen=True):
    """A user wants the task to end immediately."""

    task_id: str
    reason: str


@event("scheduler.task.forgotten", key="task_id")
class TaskForgotten(msgspec.Struct, frozen=True):
    """A task that ended long ago is removed from lists, with its log lines. Reports still count its run."""

    task_id: str
    number: int
    """As in `TaskSubmitted`."""
    reason: str


@event("scheduler.task.idled", key="task_id")
class TaskIdled(msgspec.Struct, frozen=True, kw_only=True):
    """A task reported that it is idle, or in use again. If it is idle for `within_s`, it is ended."""

    task_id: str
    idle: bool
    within_s: float
    """From its configuration; counted from the time of this event."""
    reason: str


@event("scheduler.allocation.assigned", key="allocation_id")
class AllocationAssigned(msgspec.Struct, frozen=True, kw_only=True):
    """Slots are assigned to the allocation. Each worker in `parts` starts its share."""

    allocation_id: str
    task_id: str
    kind: TaskKind
    parts: tuple[Part, ...]
    trial_id: int | None = None
    experiment_id: int
    run: int
    reason: str
    backfilled: bool = False
    """Whether it fills a gap ahead of a request with higher priority that does not fit yet."""
    fence_s: float = 0.0
    """After this long without contact to the cluster its hosts end it themselves; 0: they let it run."""


@event("scheduler.allocation.daemon_marked", key="allocation_id")
class DaemonMarked(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an allocation serves the others, and is ended when they have ended (scheduling spec, 8.4)."""

    allocation_id: str
    rank: int
    """Rank of the part."""
    reason: str


@event("scheduler.allocation.preempt_requested", key="allocation_id")
class PreemptRequested(msgspec.Struct, frozen=True, kw_only=True):
    """The script is asked to save and exit, and listens for it.

    It is killed if it has not exited `within_s`.
    """

    allocation_id: str
    reason: str
    wanted_by: str = ""
    """Allocation that its slots are for; empty if a user or the search wants it to exit."""
    within_s: float = 3600.0
    """Counted from the time of this event."""
    deadline_at: float | None = None
    """The deadline itself, in events older than `within_s`."""


@event("scheduler.allocation.kill_requested", key="allocation_id")
class KillRequested(msgspec.Struct, frozen=True):
    """Workers must end the allocation's processes immediately."""

    allocation_id: str
    reason: str


@event("scheduler.allocation.ended", key="allocation_id")
class AllocationEnded(msgspec.Struct, frozen=True, kw_only=True):
    """All members have ended and the slots are free. The searcher decides what that means for the trial."""

    allocation_id: str
    kind: TaskKind
    trial_id: int | None = None
    run: int
    outcome: Outcome
    exit_code: int | None = None
    reason: str
    permanent: bool = False
    """Whether a retry would fail the same way. False in older events."""
    asked_to_leave: bool = True
    """Whether it had been asked to exit. True in older events, which do not say it."""


@event("scheduler.allocation.given_up", key="allocation_id")
class GivenUp(msgspec.Struct, frozen=True):
    """A part on a lost worker has ended: the time its host had to end it (`fence_s`) has passed."""

    allocation_id: str
    worker_id: str
    reason: str


@event("scheduler.worker.lost", key="worker_id")
class WorkerLost(msgspec.Struct, frozen=True):
    """No heartbeat for longer than the reconnect timeout. What ran there ends as `worker_lost`.

    It ends immediately, or, where hosts fence themselves, once they have had the time to do so.
    """

    worker_id: str
    reason: str
    session: str = ""
    """That of the registration that was silent. If the worker has another one by now, the message comes too
    late, and all readers skip it. Empty in older events, which always count."""


@event("scheduler.worker.forgotten", key="worker_id")
class WorkerForgotten(msgspec.Struct, frozen=True):
    """A worker that left or was lost long ago is removed from all lists.

    If it returns, it is a new worker.
    """

    worker_id: str
    reason: str


@event("scheduler.allocation.deadline_passed", key="allocation_id")
class DeadlinePassed(msgspec.Struct, frozen=True):
    """A due time in the scheduler's state has come. This makes time a fact of the log."""

    allocation_id: str
    due_at: float


@event("scheduler.trial.pause_over", key="trial_id")
class PauseOver(msgspec.Struct, frozen=True):
    """A run of the trial has ended without a timely decision about the trial. Others may use its share."""

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
    """A user enabled or disabled a worker. Disabled without `draining`, its running tasks are killed."""

    worker_id: str
    enabled: bool
    draining: bool = False
    """Disabled only for new work; running tasks may finish."""
    reason: str


@event("scheduler.worker.wanted", key="worker_id")
class WorkerWanted(msgspec.Struct, frozen=True, kw_only=True):
    """A pool needs another worker. The provisioner listens and requests one from the pool's engine."""

    worker_id: str
    """The new worker registers under this id, which is never reused."""
    pool: str
    number: int
    """Counts the workers requested by the pool, from 1."""
    reason: str


@event("scheduler.worker.provision_reported", key="worker_id")
class ProvisionReported(msgspec.Struct, frozen=True, kw_only=True):
    """An engine's report about a requested worker. Published when it contains something new."""

    worker_id: str
    pool: str
    phase: Phase
    detail: str = ""
    """The engine's own text: its job id, what it waits for, why it ended."""
    ends_at: float = 0.0
    """When the engine will take the host away, in seconds since the epoch; 0 if unknown."""
    reason: str


@event("scheduler.worker.time_passed", key="worker_id")
class WorkerTimePassed(msgspec.Struct, frozen=True):
    """A due time of a requested worker has come: it is idle, late or gone, or its host's time is ending."""

    worker_id: str
    due_at: float


@event("scheduler.worker.released", key="worker_id")
class WorkerReleased(msgspec.Struct, frozen=True, kw_only=True):
    """A worker is given back: it gets no more work, and its engine ends it once it is empty.

    Tasks that still run on it are asked to save and exit.
    """

    worker_id: str
    pool: str
    reason: str
    failed: bool = False
    """It never fulfilled its purpose, so the pool waits before it requests another."""


@event("scheduler.worker.dismissed", key="worker_id")
class WorkerDismissed(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is left of a requested worker: neither its engine nor the cluster knows it any more."""

    worker_id: str
    pool: str
    reason: str
    failed: bool = False
    """It ended before it ever registered, so the pool waits before it requests another."""


@event("scheduler.pool.engine_reported", key="pool")
class EngineReported(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a pool's engine can be queried. Published when that changes."""

    pool: str
    problem: str
    """Why it cannot be queried, in its own words; empty if it answers."""
    reason: str


@event("scheduler.pool.retry_due", key="pool")
class RetryDue(msgspec.Struct, frozen=True):
    """A pool has waited long enough after workers that failed to start, and may request others."""

    pool: str
    due_at: float


@event("scheduler.worker.slot_switched", key="worker_id")
class SlotSwitched(msgspec.Struct, frozen=True, kw_only=True):
    """A user enabled or disabled one slot of a worker; see `WorkerSwitched`."""

    worker_id: str
    slot_id: int
    enabled: bool
    draining: bool = False
    reason: str


@event("scheduler.job.changed", key="experiment_id")
class JobChanged(msgspec.Struct, frozen=True, kw_only=True):
    """The complete queue settings of a job, after a change by a user."""

    experiment_id: int
    pool: str
    priority: int
    """1 to 99, smaller numbers first."""
    weight: float
    """Fair share weight, above 0."""
    max_slots: int | None
    """Maximum number of slots of all its allocations together; None means no limit."""
    position: str
    """Decimal number; smaller runs first. Initially the submission time in microseconds."""
    reason: str


@event("scheduler.creation.kept", key="request_id")
class CreationKept(msgspec.Struct, frozen=True):
    """Something was created for a request with an `Idempotency-Key`. Repeated requests return it."""

    request_id: str
    """Derived from the user and the key."""
    key: str
    digest: str
    """Digest of the complete request. A different request with the same key is refused."""
    value: Any
    """The answer to the command: the id of the created object."""
    reason: str
