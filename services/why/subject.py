"""The subject of a question, and the events that produced its current state."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, gateway, scheduler, searcher, trial, worker
from services.why.history import History, Thing
from services.why.links import OF_POOL, OF_WORKER, around, experiment, experiment_of

_LIFE = (
    searcher.ExperimentCreated,
    searcher.ExperimentActivated,
    searcher.ExperimentPaused,
    searcher.ExperimentStopping,
    searcher.ExperimentEnded,
    searcher.ExperimentDeleting,
    searcher.ExperimentDeleted,
)
_RUN = (
    scheduler.AllocationAssigned,
    scheduler.PreemptRequested,
    scheduler.KillRequested,
    scheduler.AllocationEnded,
    worker.AllocationStarted,
)
_TRIAL = (
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

    def whose(self) -> int:
        """The trial's id. Raises ValueError if the subject has no trial."""
        if self.trial_id is None:
            raise ValueError(f"{self.kind} {self.id} belongs to no trial")
        return self.trial_id


def ends(history: History, subject: Subject) -> list[Recorded]:
    """The events that produced the subject's current state. Unread things are noted in `history.missing`."""
    found = _ENDS[subject.kind](history, subject)
    return [one for one in found if one is not None]


def _experiment(history: History, subject: Subject) -> list[Recorded | None]:
    id = subject.experiment_id
    return [history.newest([experiment(id)], _LIFE, where=lambda e: e.experiment_id == id)]


def _trial(history: History, subject: Subject) -> list[Recorded | None]:
    id = subject.whose()
    own = [Thing("trial", id)]
    # A trial outside the cluster may run again after it has ended.
    last = (searcher.TrialEnded, searcher.RunOpened)
    end = history.newest(own, last, where=lambda e: e.trial_id == id)
    if end is not None and type(end.event) is searcher.TrialEnded:
        return [end]
    newest = [
        history.newest(own, _TRIAL, where=lambda e: e.trial_id == id),
        *(_run(history, allocation) for allocation in subject.allocation_ids),
    ]
    if experiment_of(history, id) is not None and subject.state != "ACTIVE":
        newest += _stopped(history, subject)
    return [max((one for one in newest if one), key=lambda one: one.position, default=None)]


def _stopped(history: History, subject: Subject) -> list[Recorded | None]:
    """Decisions about the experiment that keep a trial from running."""
    types = (searcher.ExperimentPaused, searcher.ExperimentStopping)
    id = subject.experiment_id
    return [history.newest([experiment(id)], types, where=lambda e: e.experiment_id == id)]


def _run(history: History, id: str) -> Recorded | None:
    return history.newest(around(id, history), _RUN, where=lambda e: e.allocation_id == id)


def _allocation(history: History, subject: Subject) -> list[Recorded | None]:
    (id,) = subject.allocation_ids
    return [_run_or_request(history, id)]


def _run_or_request(history: History, id: str) -> Recorded | None:
    """The newest event of a run or, if it still waits, the request for it."""
    asked = (searcher.RunRequested,)
    return _run(history, id) or history.newest(
        around(id, history), asked, where=lambda e: e.allocation_id == id
    )


def _job(history: History, subject: Subject) -> list[Recorded | None]:
    id = subject.experiment_id
    changed = history.newest([experiment(id)], (scheduler.JobChanged,), where=lambda e: e.experiment_id == id)
    runs = [_run_or_request(history, one) for one in subject.allocation_ids]
    return [*_experiment(history, subject), changed, *runs]


def _checkpoint(history: History, subject: Subject) -> list[Recorded | None]:
    deletions = (checkpoints.DeletionRequested, checkpoints.DeletionFinished)
    gone = history.newest(
        [Thing("deletions", subject.experiment_id)], deletions, where=lambda e: subject.id in e.uuids
    )
    stored = history.newest(
        [Thing("trial", subject.whose())], (trial.CheckpointStored,), where=lambda e: e.uuid == subject.id
    )
    return [gone, stored]


def _worker(history: History, subject: Subject) -> list[Recorded | None]:
    id = subject.id
    return [history.newest([Thing("worker", id)], OF_WORKER, where=lambda e: e.worker_id == id)]


def _pool(history: History, subject: Subject) -> list[Recorded | None]:
    """The newest events of the pool, and of each worker that it requested."""
    things = [Thing("pool", subject.id)]
    kinds = (scheduler.PoolConfigured, scheduler.EngineReported, gateway.PoolBound)
    found = [history.newest(things, (kind,), where=lambda e: e.pool == subject.id) for kind in kinds]
    newest = {r.event.worker_id: r for r in history.events if _asked_by(r.event, subject.id)}
    return [*found, *newest.values()]


def _asked_by(event: Any, pool: str) -> bool:
    return isinstance(event, OF_POOL) and event.pool == pool


_ENDS = {
    "worker": _worker,
    "pool": _pool,
    "experiment": _experiment,
    "trial": _trial,
    "allocation": _allocation,
    "job": _job,
    "checkpoint": _checkpoint,
}
