"""Maps each event to the function that folds it. Events without an effect on lists or pages are ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, gateway, metrics, scheduler, searcher, trial, worker
from services.catalogue.domain import (
    allocations,
    experiments,
    hosts,
    models,
    registry,
    trials,
)
from services.catalogue.domain.state import State
from services.kit.idempotency import keep
from services.kit.rules import Key
from services.people.domain.fold import FOLDS as PEOPLE

Fold = Callable[[State, Recorded], Iterable[Key]]


def evolve(state: State, recorded: Recorded) -> Iterable[Key]:
    """Fold one event; return the keys of the changed records."""
    fold = _FOLDS.get(type(recorded.event))
    return list(fold(state, recorded)) if fold is not None else ()


_FOLDS: dict[type[msgspec.Struct], Fold] = {
    **PEOPLE,
    searcher.ExperimentCreated: experiments.created,
    searcher.ExperimentActivated: experiments.moved,
    searcher.ExperimentPaused: experiments.moved,
    searcher.ExperimentStopping: experiments.moved,
    searcher.ExperimentEnded: experiments.moved,
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
    searcher.OperationSet: trials.answered,
    searcher.TrialIdled: trials.answered,
    scheduler.AllocationAssigned: allocations.assigned,
    scheduler.AllocationEnded: allocations.ended,
    scheduler.PreemptRequested: allocations.asked_to_leave,
    scheduler.JobChanged: experiments.job_changed,
    scheduler.WorkerLost: hosts.gone,
    scheduler.WorkerForgotten: hosts.forgotten,
    scheduler.WorkerSwitched: hosts.switched,
    scheduler.SlotSwitched: hosts.slot_switched,
    worker.WorkerRegistered: hosts.registered,
    worker.WorkerLeft: hosts.gone,
    worker.AllocationStarted: allocations.started,
    trial.StatusSet: trials.status_set,
    trial.CheckpointStored: models.stored,
    metrics.Validated: models.validated,
    metrics.Settled: trials.settled,
    checkpoints.DeletionRequested: models.going,
    checkpoints.DeletionFinished: models.deleted,
    checkpoints.MetadataSet: models.metadata_set,
    checkpoints.FilesListed: models.files_listed,
    checkpoints.ModelSet: registry.model_set,
    checkpoints.ModelRemoved: registry.model_removed,
    checkpoints.VersionSet: registry.version_set,
    checkpoints.VersionRemoved: registry.version_removed,
    scheduler.TaskSubmitted: allocations.submitted,
    scheduler.TaskForgotten: allocations.task_forgotten,
    gateway.Served: allocations.served,
    gateway.GatherJoined: allocations.gather_joined,
    gateway.ExperimentMoved: experiments.moved_to,
    **{owner.CreationKept: keep for owner in (searcher, scheduler, checkpoints)},
}
