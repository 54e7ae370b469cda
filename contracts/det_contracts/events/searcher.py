"""Decisions of the searcher: experiments, trials, and how far each trial trains."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.codec import event
from det_contracts.context import Context
from det_contracts.custom_search import CustomOperation
from det_contracts.events.gateway import AgentUser
from det_contracts.states import State


@event("searcher.experiment.created", key="experiment_id")
class ExperimentCreated(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration was accepted, and the search has its initial operations.

    All services and workers listen.

    The experiment is PAUSED until `ExperimentActivated`.
    """

    experiment_id: int
    user: str
    config: dict[str, Any]
    """The completed configuration."""
    original_config: str
    """The text as submitted."""
    context: Context | None = None
    parent_id: int | None = None
    project_id: int = 1
    source_checkpoint: str | None = None
    """Checkpoint that every trial starts from (warm start), resolved at submission."""
    request_key: str = ""
    """`:` and the submitter's external id; in old events also an idempotency key.

    A second command with the same key returns this experiment, as long as it is not deleted.
    """
    unmanaged: bool = False
    """Its trials run off cluster, and the cluster only records them: no search, no slots."""
    agent_user: AgentUser | None = None
    """Host user that its trials run as on workers; None: as the worker is configured."""
    method_version: int = 1
    """Version of the search method's decisions.

    Later releases continue the search with the version it began with.
    """
    reason: str


@event("searcher.experiment.activated", key="experiment_id")
class ExperimentActivated(msgspec.Struct, frozen=True):
    """Trials may request slots from now on. An unmanaged experiment that had ended continues."""

    experiment_id: int
    reason: str


@event("searcher.experiment.paused", key="experiment_id")
class ExperimentPaused(msgspec.Struct, frozen=True):
    """Running trials are asked to save and exit, and none starts."""

    experiment_id: int
    reason: str


@event("searcher.experiment.stopping", key="experiment_id")
class ExperimentStopping(msgspec.Struct, frozen=True):
    """The experiment will end in the state that `to` leads to, once no trial is left."""

    experiment_id: int
    to: State
    reason: str


@event("searcher.experiment.ended", key="experiment_id")
class ExperimentEnded(msgspec.Struct, frozen=True):
    """Final. Checkpoints reacts by applying the retention policy."""

    experiment_id: int
    state: State
    reason: str


@event("searcher.experiment.kill_forced", key="experiment_id")
class ExperimentKillForced(msgspec.Struct, frozen=True):
    """The remaining runs of an experiment that is already stopping are killed. It ends as decided before."""

    experiment_id: int
    reason: str


@event("searcher.experiment.operations_posted", key="experiment_id")
class OperationsPosted(msgspec.Struct, frozen=True, kw_only=True):
    """A user-defined search method (`custom` searcher) posted operations."""

    experiment_id: int
    triggered_by: int
    """The event that this answers, together with all events before it."""
    operations: tuple[CustomOperation, ...]
    reason: str


@event("searcher.experiment.trial_requested", key="experiment_id")
class TrialRequested(msgspec.Struct, frozen=True, kw_only=True):
    """An off-cluster client wants a trial of an unmanaged experiment. `TrialCreated` follows."""

    experiment_id: int
    request_id: str
    """Identifies the trial in its experiment; chosen by the client."""
    hparams: dict[str, Any]
    reason: str


@event("searcher.experiment.archived", key="experiment_id")
class ExperimentArchived(msgspec.Struct, frozen=True):
    """Hidden from the default lists, or shown in them again."""

    experiment_id: int
    archived: bool
    reason: str


@event("searcher.experiment.revised", key="experiment_id")
class ExperimentRevised(msgspec.Struct, frozen=True):
    """Fields that may change during an experiment were changed. The rest of its configuration is unchanged.

    `changes` maps dotted fields to new values: `name`, `description`, `labels`, `notes` and
    `checkpoint_storage.save_*`. Slot settings belong to the scheduler: `scheduler.job.changed`.
    """

    experiment_id: int
    changes: dict[str, Any]
    reason: str


@event("searcher.experiment.deleting", key="experiment_id")
class ExperimentDeleting(msgspec.Struct, frozen=True):
    """All of it should be deleted.

    Checkpoints first empties the storage and answers with `ExperimentEmptied`.
    """

    experiment_id: int
    reason: str


@event("searcher.experiment.trials_deleted", key="experiment_id")
class TrialsDeleted(msgspec.Struct, frozen=True):
    """Some of an experiment's trials are deleted with all their data. Every service forgets them.

    A deletion is done in portions, so that a large one blocks nobody. `ExperimentDeleted` ends it.
    """

    experiment_id: int
    trial_ids: tuple[int, ...]
    task_ids: tuple[str, ...]
    """Tasks of these trials, in the same order."""
    reason: str


@event("searcher.experiment.deleted", key="experiment_id")
class ExperimentDeleted(msgspec.Struct, frozen=True):
    """Final if `state` is DELETED: every service forgets it.

    After DELETE_FAILED, deletion may be requested again.
    """

    experiment_id: int
    state: State
    reason: str
    trial_ids: tuple[int, ...] = ()
    """Trials deleted with it, in old events. Since then `TrialsDeleted` names them beforehand."""


@event("searcher.trial.created", key="trial_id")
class TrialCreated(msgspec.Struct, frozen=True, kw_only=True):
    """The search method or a user requested a trial. Workers read hyperparameters and seed from here."""

    trial_id: int
    experiment_id: int
    request_id: str
    task_id: str
    seed: int
    """0 to 2^31 - 1."""
    hparams: dict[str, Any]
    reason: str


@event("searcher.trial.operation_set", key="trial_id")
class OperationSet(msgspec.Struct, frozen=True):
    """Train to a total of `length`, validate, report. The trial's script listens."""

    trial_id: int
    seq: int
    """Counts the trial's operations from 1. An operation is identified by (trial, seq), not by its length."""
    length: int
    """Absolute, in the unit of `searcher.max_length`."""
    reason: str


@event("searcher.trial.idled", key="trial_id")
class TrialIdled(msgspec.Struct, frozen=True):
    """Operation `seq` is answered and there is no further one for now; the script may exit."""

    trial_id: int
    seq: int
    final: bool
    """True if no operation will ever follow; false if the trial may still be promoted."""
    reason: str


@event("searcher.trial.run_requested", key="trial_id")
class RunRequested(msgspec.Struct, frozen=True, kw_only=True):
    """The trial requests slots, and the scheduler queues it.

    A new `run` invalidates reports of earlier ones.
    """

    trial_id: int
    experiment_id: int
    task_id: str
    allocation_id: str
    run: int
    """Starts at 1."""
    slots: int
    pool: str
    priority: int
    checkpoint: str | None = None
    """The checkpoint that the run resumes from."""
    steps_completed: int = 0
    """Steps at `checkpoint`; 0 for a warm start."""
    reason: str


@event("searcher.trial.run_opened", key="trial_id")
class RunOpened(msgspec.Struct, frozen=True, kw_only=True):
    """An off-cluster script runs an unmanaged trial; no slots are requested.

    A new `run` invalidates reports of earlier ones. If the same run appears again, it was considered lost and
    has been heard from again. A trial that had ended continues with this.
    """

    trial_id: int
    experiment_id: int
    task_id: str
    allocation_id: str
    run: int
    """Starts at 1."""
    checkpoint: str | None = None
    """The checkpoint that the run resumes from."""
    steps_completed: int = 0
    patience_s: float = 300.0
    """Silence after which its script is considered lost; counted from here and from each heartbeat."""
    reason: str


@event("searcher.trial.stop_requested", key="trial_id")
class StopRequested(msgspec.Struct, frozen=True, kw_only=True):
    """The trial's current run is no longer wanted. The scheduler ends the allocation."""

    trial_id: int
    allocation_id: str
    kill: bool
    """False: ask it to save and exit (preemption); true: end it immediately."""
    reason: str


@event("searcher.trial.run_ended", key="trial_id")
class RunEnded(msgspec.Struct, frozen=True, kw_only=True):
    """The consequence of a run's end for the trial (scheduling spec, 8.3)."""

    trial_id: int
    run: int
    restarts: int
    """Failures that count against `max_restarts`, including this one."""
    reason: str


@event("searcher.trial.stopping", key="trial_id")
class TrialStopping(msgspec.Struct, frozen=True):
    """A user ended this one trial. It will end in the state that `to` leads to."""

    trial_id: int
    to: State
    reason: str


@event("searcher.trial.ended", key="trial_id")
class TrialEnded(msgspec.Struct, frozen=True, kw_only=True):
    """Final, except for an unmanaged trial, which may run again (`RunOpened`)."""

    trial_id: int
    state: State
    restarts: int
    """Failures that counted against `max_restarts`."""
    early_exit: str | None = None
    """Exit reason passed to the search method (searchers spec, 1.2); None after a regular end."""
    reason: str


@event("searcher.trial.overdue", key="trial_id")
class TrialOverdue(msgspec.Struct, frozen=True):
    """A due time of a run has come.

    Either the script declared the trial invalid but is still running, and the run is killed; or the script of
    an unmanaged trial has been silent for too long, and the trial ends as failed.
    """

    trial_id: int
    run: int
    due_at: float
    reason: str = ""


@event("searcher.creation.kept", key="request_id")
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
