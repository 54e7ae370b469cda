"""What the searcher decides: experiments, trials, and how far each trial trains."""

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
    """A configuration was accepted; the search has its initial operations. All services and workers listen.

    The experiment is PAUSED until `ExperimentActivated`.
    """

    experiment_id: int
    user: str
    config: dict[str, Any]
    """The completed configuration."""
    original_config: str
    """The text as it was submitted."""
    context: Context | None = None
    parent_id: int | None = None
    project_id: int = 1
    source_checkpoint: str | None = None
    """Checkpoint that every trial starts from (warm start), resolved at submit."""
    request_key: str = ""
    """`:` and the submitter's external id, in old events also an idempotency key; a second command with it
    answers with this experiment, as long as that is not deleted."""
    unmanaged: bool = False
    """Its trials run outside of the cluster, which is only told of them: no search, no slots."""
    agent_user: AgentUser | None = None
    """Who its trials run as on the hosts of workers; None: as the worker is told."""
    method_version: int = 1
    """Of what the search method decides: later releases fold the search as it began."""
    reason: str


@event("searcher.experiment.activated", key="experiment_id")
class ExperimentActivated(msgspec.Struct, frozen=True):
    """Trials may ask for slots from now on. Of an unmanaged one that had ended: it goes on."""

    experiment_id: int
    reason: str


@event("searcher.experiment.paused", key="experiment_id")
class ExperimentPaused(msgspec.Struct, frozen=True):
    """Running trials are asked to save and leave; none starts."""

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
    """Final. Checkpoints reacts with the retention policy."""

    experiment_id: int
    state: State
    reason: str


@event("searcher.experiment.kill_forced", key="experiment_id")
class ExperimentKillForced(msgspec.Struct, frozen=True):
    """What still runs of an experiment that is stopping anyway is killed; it ends as decided before."""

    experiment_id: int
    reason: str


@event("searcher.experiment.operations_posted", key="experiment_id")
class OperationsPosted(msgspec.Struct, frozen=True, kw_only=True):
    """A user's own search method decided (`custom` searcher)."""

    experiment_id: int
    triggered_by: int
    """The event that is answered with this, and with it all before."""
    operations: tuple[CustomOperation, ...]
    reason: str


@event("searcher.experiment.trial_requested", key="experiment_id")
class TrialRequested(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody outside of the cluster wants a trial of an unmanaged experiment. `TrialCreated` follows."""

    experiment_id: int
    request_id: str
    """Names the trial in its experiment; whoever asks chooses it."""
    hparams: dict[str, Any]
    reason: str


@event("searcher.experiment.archived", key="experiment_id")
class ExperimentArchived(msgspec.Struct, frozen=True):
    """Out of the usual lists, or back in them."""

    experiment_id: int
    archived: bool
    reason: str


@event("searcher.experiment.revised", key="experiment_id")
class ExperimentRevised(msgspec.Struct, frozen=True):
    """Fields that may change while an experiment lives were changed; the rest of its configuration stays.

    `changes` goes from dotted field to new value: `name`, `description`, `labels`, `notes` and
    `checkpoint_storage.save_*`. What concerns slots is the scheduler's: `scheduler.job.changed`.
    """

    experiment_id: int
    changes: dict[str, Any]
    reason: str


@event("searcher.experiment.deleting", key="experiment_id")
class ExperimentDeleting(msgspec.Struct, frozen=True):
    """All of it shall go. Checkpoints empties the storage first and answers with `ExperimentEmptied`."""

    experiment_id: int
    reason: str


@event("searcher.experiment.trials_deleted", key="experiment_id")
class TrialsDeleted(msgspec.Struct, frozen=True):
    """Some of an experiment's trials are gone with all that was kept of them: every service forgets them.

    A deletion comes in portions, for nobody may be held up by a large one; `ExperimentDeleted` is its end.
    """

    experiment_id: int
    trial_ids: tuple[int, ...]
    task_ids: tuple[str, ...]
    """Of these trials, in the same order."""
    reason: str


@event("searcher.experiment.deleted", key="experiment_id")
class ExperimentDeleted(msgspec.Struct, frozen=True):
    """Final when `state` is DELETED: every service forgets it. After DELETE_FAILED one may ask again."""

    experiment_id: int
    state: State
    reason: str
    trial_ids: tuple[int, ...] = ()
    """Trials that go with it, in old events; since then `TrialsDeleted` has named them before."""


@event("searcher.trial.created", key="trial_id")
class TrialCreated(msgspec.Struct, frozen=True, kw_only=True):
    """The search method, or a person, asked for a trial. Workers read hyperparameters and seed from here."""

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
    """Train up to `length` in all, validate, report. The trial's script listens."""

    trial_id: int
    seq: int
    """Counts the trial's operations from 1; an operation is known by (trial, seq), not by its length."""
    length: int
    """Absolute, in the unit of `searcher.max_length`."""
    reason: str


@event("searcher.trial.idled", key="trial_id")
class TrialIdled(msgspec.Struct, frozen=True):
    """Operation `seq` is answered and nothing follows for now; the script may leave."""

    trial_id: int
    seq: int
    final: bool
    """True when nothing will ever follow; false when the trial may still be promoted."""
    reason: str


@event("searcher.trial.run_requested", key="trial_id")
class RunRequested(msgspec.Struct, frozen=True, kw_only=True):
    """The trial wants slots: the scheduler queues it. A new `run` invalidates reports of earlier ones."""

    trial_id: int
    experiment_id: int
    task_id: str
    allocation_id: str
    run: int
    """From 1."""
    slots: int
    pool: str
    priority: int
    checkpoint: str | None = None
    """What the run resumes from."""
    steps_completed: int = 0
    """Steps that `checkpoint` stands for; 0 for a warm start."""
    reason: str


@event("searcher.trial.run_opened", key="trial_id")
class RunOpened(msgspec.Struct, frozen=True, kw_only=True):
    """A script outside of the cluster runs an unmanaged trial; no slots are asked for.

    A new `run` invalidates reports of earlier ones; the same run again was taken for lost, and is heard of
    again. A trial that had ended goes on with this.
    """

    trial_id: int
    experiment_id: int
    task_id: str
    allocation_id: str
    run: int
    """From 1."""
    checkpoint: str | None = None
    """What the run resumes from."""
    steps_completed: int = 0
    patience_s: float = 300.0
    """Silence after which its script is taken for lost; counted from here and from each heartbeat."""
    reason: str


@event("searcher.trial.stop_requested", key="trial_id")
class StopRequested(msgspec.Struct, frozen=True, kw_only=True):
    """The trial's present run is no longer wanted. The scheduler ends the allocation."""

    trial_id: int
    allocation_id: str
    kill: bool
    """False: ask it to save and leave (preempt); true: end it at once."""
    reason: str


@event("searcher.trial.run_ended", key="trial_id")
class RunEnded(msgspec.Struct, frozen=True, kw_only=True):
    """What the end of a run means for the trial (scheduling spec, 8.3)."""

    trial_id: int
    run: int
    restarts: int
    """Failures that count against `max_restarts`, this one included."""
    reason: str


@event("searcher.trial.stopping", key="trial_id")
class TrialStopping(msgspec.Struct, frozen=True):
    """A person ended this one trial; it will end in the state that `to` leads to."""

    trial_id: int
    to: State
    reason: str


@event("searcher.trial.ended", key="trial_id")
class TrialEnded(msgspec.Struct, frozen=True, kw_only=True):
    """Final, but for an unmanaged trial: that may run again (`RunOpened`)."""

    trial_id: int
    state: State
    restarts: int
    """Failures that counted against `max_restarts`."""
    early_exit: str | None = None
    """Exit reason that the search method is told (searchers spec, 1.2); None after a regular end."""
    reason: str


@event("searcher.trial.overdue", key="trial_id")
class TrialOverdue(msgspec.Struct, frozen=True):
    """A due time of a run has come.

    The script gave the trial up as invalid but still runs: the run is killed. Or nothing is heard of the
    script of an unmanaged trial: it ends as failed.
    """

    trial_id: int
    run: int
    due_at: float
    reason: str = ""


@event("searcher.creation.kept", key="request_id")
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
