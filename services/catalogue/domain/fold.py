"""Maps each event to the function that folds it. Events without an effect on lists or pages are ignored."""

from __future__ import annotations

from det_contracts.events import checkpoints, gateway, metrics, scheduler, searcher, trial, worker
from services.catalogue.domain import (
    allocations,
    experiments,
    registry,
    results,
    trials,
    workers,
)
from services.catalogue.domain.state import State
from services.kit.folds import Fold, FoldOne
from services.kit.idempotency import fold_result
from services.people.domain.fold import FOLDS as PEOPLE

_FOLDS: dict[type, FoldOne[State]] = {
    **PEOPLE,
    searcher.ExperimentCreated: experiments.created,
    searcher.ExperimentActivated: experiments.state_changed,
    searcher.ExperimentPaused: experiments.state_changed,
    searcher.ExperimentStopping: experiments.state_changed,
    searcher.ExperimentEnded: experiments.state_changed,
    searcher.ExperimentArchived: experiments.archived,
    searcher.ExperimentRevised: experiments.revised,
    searcher.ExperimentDeleting: experiments.deleting,
    searcher.TrialsDeleted: experiments.trials_deleted,
    searcher.ExperimentDeleted: experiments.deleted,
    searcher.TrialCreated: trials.created,
    searcher.TrialStopping: trials.stopping,
    searcher.TrialEnded: trials.ended,
    searcher.RunRequested: allocations.requested,
    searcher.RunOpened: allocations.opened,
    searcher.RunEnded: trials.run_ended,
    searcher.OperationSet: trials.operation_answered,
    searcher.TrialIdled: trials.operation_answered,
    scheduler.AllocationAssigned: allocations.assigned,
    scheduler.AllocationEnded: allocations.ended,
    scheduler.PreemptRequested: allocations.preemption_requested,
    scheduler.JobChanged: experiments.job_changed,
    scheduler.WorkerLost: workers.left,
    scheduler.WorkerForgotten: workers.forgotten,
    scheduler.WorkerSwitched: workers.switched,
    scheduler.SlotSwitched: workers.slot_switched,
    worker.WorkerRegistered: workers.registered,
    worker.WorkerLeft: workers.left,
    worker.AllocationStarted: allocations.started,
    trial.StatusSet: trials.status_set,
    trial.CheckpointStored: results.checkpoint_stored,
    metrics.Validated: results.validated,
    metrics.Settled: trials.settled,
    checkpoints.DeletionRequested: results.deletion_requested,
    checkpoints.DeletionFinished: results.deletion_finished,
    checkpoints.MetadataSet: results.metadata_set,
    checkpoints.FilesListed: results.files_listed,
    checkpoints.ModelSet: registry.model_set,
    checkpoints.ModelRemoved: registry.model_removed,
    checkpoints.VersionSet: registry.version_set,
    checkpoints.VersionRemoved: registry.version_removed,
    scheduler.TaskSubmitted: allocations.submitted,
    scheduler.TaskForgotten: allocations.task_forgotten,
    gateway.Served: allocations.served,
    gateway.GatherJoined: allocations.gather_joined,
    gateway.ExperimentMoved: experiments.project_changed,
    gateway.TrialSourceReported: results.source_reported,
    **{owner.CreationKept: fold_result for owner in (searcher, scheduler, checkpoints)},
}

evolve = Fold(_FOLDS)
"""Folds one event; returns the keys of the changed records."""
