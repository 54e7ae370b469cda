"""How each event changes the catalogue. What a person cannot look at passes by."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, gateway, metrics, scheduler, searcher, trial, worker
from services.gateway.domain import allocations, experiments, hosts, models, trials
from services.gateway.domain.state import ClosedSession, State, Template
from services.kit.rules import Key

Fold = Callable[[State, Recorded], Iterable[Key]]


def evolve(state: State, recorded: Recorded) -> Iterable[Key]:
    """Fold one event; returns the records that it replaced."""
    fold = _FOLDS.get(type(recorded.event))
    return list(fold(state, recorded)) if fold is not None else ()


def _session_closed(state: State, recorded: Recorded) -> Iterable[Key]:
    event: gateway.SessionClosed = recorded.event
    state.sessions[event.session_id] = ClosedSession(event.user)
    yield "sessions", event.session_id


def _template_set(state: State, recorded: Recorded) -> Iterable[Key]:
    event: gateway.TemplateSet = recorded.event
    state.templates[event.template_id] = Template(event.name, event.config)
    yield "templates", event.template_id


def _template_removed(state: State, recorded: Recorded) -> Iterable[Key]:
    state.templates.pop(recorded.event.template_id, None)
    yield "templates", recorded.event.template_id


_FOLDS: dict[type[msgspec.Struct], Fold] = {
    searcher.ExperimentCreated: experiments.created,
    searcher.ExperimentActivated: experiments.moved,
    searcher.ExperimentPaused: experiments.moved,
    searcher.ExperimentStopping: experiments.moved,
    searcher.ExperimentEnded: experiments.moved,
    searcher.ExperimentArchived: experiments.archived,
    searcher.ExperimentRevised: experiments.revised,
    searcher.ExperimentDeleting: experiments.deleting,
    searcher.ExperimentDeleted: experiments.deleted,
    searcher.TrialCreated: trials.created,
    searcher.TrialStopping: trials.stopping,
    searcher.TrialEnded: trials.ended,
    searcher.RunRequested: allocations.requested,
    searcher.RunEnded: trials.run_ended,
    searcher.OperationSet: trials.answered,
    searcher.TrialIdled: trials.answered,
    scheduler.AllocationAssigned: allocations.assigned,
    scheduler.AllocationEnded: allocations.ended,
    scheduler.PreemptRequested: allocations.asked_to_leave,
    scheduler.JobChanged: experiments.job_changed,
    scheduler.WorkerLost: hosts.gone,
    scheduler.WorkerSwitched: hosts.switched,
    scheduler.SlotSwitched: hosts.slot_switched,
    worker.WorkerRegistered: hosts.registered,
    worker.WorkerLeft: hosts.gone,
    worker.AllocationStarted: allocations.started,
    trial.StatusSet: trials.status_set,
    trial.CheckpointStored: models.stored,
    metrics.Validated: models.validated,
    checkpoints.DeletionRequested: models.going,
    checkpoints.DeletionFinished: models.deleted,
    gateway.GatherJoined: allocations.gather_joined,
    gateway.SessionClosed: _session_closed,
    gateway.TemplateSet: _template_set,
    gateway.TemplateRemoved: _template_removed,
}
