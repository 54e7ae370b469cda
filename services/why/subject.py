"""The subject of a question, and the events that produced its current state."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, gateway, scheduler, searcher, trial, worker
from services.why.history import Entity, History
from services.why.links import (
    POOL_WORKER_EVENTS,
    WORKER_EVENTS,
    entities_of_allocation,
    experiment_entity,
    experiment_of,
)

_EXPERIMENT_EVENTS = (
    searcher.ExperimentCreated,
    searcher.ExperimentActivated,
    searcher.ExperimentPaused,
    searcher.ExperimentStopping,
    searcher.ExperimentEnded,
    searcher.ExperimentDeleting,
    searcher.ExperimentDeleted,
)
_RUN_EVENTS = (
    scheduler.AllocationAssigned,
    scheduler.PreemptRequested,
    scheduler.KillRequested,
    scheduler.AllocationEnded,
    worker.AllocationStarted,
)
_TRIAL_EVENTS = (
    searcher.TrialCreated,
    searcher.TrialIdled,
    searcher.RunRequested,
    searcher.RunOpened,
    searcher.RunEnded,
    searcher.TrialStopping,
)


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment, trial, allocation, job, checkpoint, worker or pool."""

    kind: str
    id: str
    state: str
    experiment_id: int
    trial_id: int | None = None
    task_id: str = ""
    """The trial's task."""
    allocation_ids: tuple[str, ...] = ()
    """The allocation itself, a trial's current allocation, or some allocations of a job."""

    def require_trial_id(self) -> int:
        """The trial's id. Raises ValueError if the subject has no trial."""
        if self.trial_id is None:
            raise ValueError(f"{self.kind} {self.id} belongs to no trial")
        return self.trial_id


def current_state_events(history: History, subject: Subject) -> list[Recorded]:
    """The events that produced the subject's current state. Unread things are noted in `history.missing`."""
    events = _FINDERS[subject.kind](history, subject)
    return [recorded for recorded in events if recorded is not None]


def _experiment(history: History, subject: Subject) -> list[Recorded | None]:
    id = subject.experiment_id
    return [
        history.find_newest(
            [experiment_entity(id)], _EXPERIMENT_EVENTS, where=lambda e: e.experiment_id == id
        )
    ]


def _trial(history: History, subject: Subject) -> list[Recorded | None]:
    id = subject.require_trial_id()
    trial_entities = [Entity("trial", id)]
    # A trial outside the cluster may run again after it has ended.
    end_types = (searcher.TrialEnded, searcher.RunOpened)
    end = history.find_newest(trial_entities, end_types, where=lambda e: e.trial_id == id)
    if end is not None and type(end.event) is searcher.TrialEnded:
        return [end]
    newest = [
        history.find_newest(trial_entities, _TRIAL_EVENTS, where=lambda e: e.trial_id == id),
        *(_run(history, allocation) for allocation in subject.allocation_ids),
    ]
    if experiment_of(history, id) is not None and subject.state != "ACTIVE":
        newest += _stopping_decisions(history, subject)
    return [
        max(
            (recorded for recorded in newest if recorded),
            key=lambda recorded: recorded.position,
            default=None,
        )
    ]


def _stopping_decisions(history: History, subject: Subject) -> list[Recorded | None]:
    """Decisions about the experiment that keep a trial from running."""
    types = (searcher.ExperimentPaused, searcher.ExperimentStopping)
    id = subject.experiment_id
    return [history.find_newest([experiment_entity(id)], types, where=lambda e: e.experiment_id == id)]


def _run(history: History, id: str) -> Recorded | None:
    return history.find_newest(
        entities_of_allocation(id, history), _RUN_EVENTS, where=lambda e: e.allocation_id == id
    )


def _allocation(history: History, subject: Subject) -> list[Recorded | None]:
    (id,) = subject.allocation_ids
    return [_run_or_request(history, id)]


def _run_or_request(history: History, id: str) -> Recorded | None:
    """The newest event of a run or, if it still waits, the request for it."""
    request_types = (searcher.RunRequested,)
    return _run(history, id) or history.find_newest(
        entities_of_allocation(id, history), request_types, where=lambda e: e.allocation_id == id
    )


def _job(history: History, subject: Subject) -> list[Recorded | None]:
    id = subject.experiment_id
    changed = history.find_newest(
        [experiment_entity(id)], (scheduler.JobChanged,), where=lambda e: e.experiment_id == id
    )
    runs = [_run_or_request(history, allocation) for allocation in subject.allocation_ids]
    return [*_experiment(history, subject), changed, *runs]


def _checkpoint(history: History, subject: Subject) -> list[Recorded | None]:
    deletions = (checkpoints.DeletionRequested, checkpoints.DeletionFinished)
    deletion = history.find_newest(
        [Entity("deletions", subject.experiment_id)], deletions, where=lambda e: subject.id in e.uuids
    )
    stored = history.find_newest(
        [Entity("trial", subject.require_trial_id())],
        (trial.CheckpointStored,),
        where=lambda e: e.uuid == subject.id,
    )
    return [deletion, stored]


def _worker(history: History, subject: Subject) -> list[Recorded | None]:
    id = subject.id
    return [history.find_newest([Entity("worker", id)], WORKER_EVENTS, where=lambda e: e.worker_id == id)]


def _pool(history: History, subject: Subject) -> list[Recorded | None]:
    """The newest events of the pool, and of each worker that it requested."""
    entities = [Entity("pool", subject.id)]
    kinds = (scheduler.PoolConfigured, scheduler.EngineReported, gateway.PoolBound)
    pool_events = [
        history.find_newest(entities, (kind,), where=lambda e: e.pool == subject.id) for kind in kinds
    ]
    newest = {r.event.worker_id: r for r in history.events if _is_requested_by(r.event, subject.id)}
    return [*pool_events, *newest.values()]


def _is_requested_by(event: Any, pool: str) -> bool:
    return isinstance(event, POOL_WORKER_EVENTS) and event.pool == pool


_FINDERS = {
    "worker": _worker,
    "pool": _pool,
    "experiment": _experiment,
    "trial": _trial,
    "allocation": _allocation,
    "job": _job,
    "checkpoint": _checkpoint,
}
