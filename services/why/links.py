"""Finds the causes of each event, with one function per event type in a table.

The log's own `cause` names the last event that the decider had read. For most decisions, the history of the
things involved has a better answer: a run got slots because its trial asked for them, and only then because
another run had left. Events without an entry here fall back to `cause`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, metrics, scheduler, searcher, trial, worker
from services.why.history import History, Thing


class Link(msgspec.Struct, frozen=True):
    """One cause of an event."""

    to: Recorded
    aside: bool = False
    """Whether the event was only the trigger. It is shown, but its own causes are not followed."""


Links = list[Link]


def causes(history: History, recorded: Recorded) -> Links:
    """The causes of an event, among those read; empty for what a person or script did on its own."""
    find = _LINKS.get(type(recorded.event), _by_cause)
    return find(history, recorded)


def _one(found: Recorded | None) -> Links:
    return [Link(found)] if found else []


def _nothing(_: History, __: Recorded) -> Links:
    return []


def _by_cause(history: History, recorded: Recorded) -> Links:
    return _one(history.cause(recorded))


def _occasion(history: History, recorded: Recorded, types: tuple[type, ...]) -> Links:
    found = history.cause(recorded)
    return [Link(found, aside=True)] if found and type(found.event) in types else []


def experiment(id: int) -> Thing:
    """The events of an experiment itself."""
    return Thing("experiment", id)


def _of_experiment(*types: type) -> Callable[[History, Recorded], Links]:
    """Find the newest event of these types about the same experiment."""

    def find(history: History, recorded: Recorded) -> Links:
        id = recorded.event.experiment_id
        things = [experiment(id)]
        return _one(
            history.newest(things, types, before=recorded.position, where=lambda e: e.experiment_id == id)
        )

    return find


def _of_trial(
    *types: type, where: Callable[[Any, Any], bool] = lambda _, __: True
) -> Callable[[History, Recorded], Links]:
    """Find the newest event of these types about the same trial. `where` takes the event and a candidate."""

    def find(history: History, recorded: Recorded) -> Links:
        event = recorded.event
        fits = lambda e: e.trial_id == event.trial_id and where(event, e)  # noqa: E731
        things = [Thing("trial", event.trial_id)]
        return _one(history.newest(things, types, before=recorded.position, where=fits))

    return find


def _of_trial_or_above(*types: type) -> Callable[[History, Recorded], Links]:
    """Find the newest event of these types about the same trial or its experiment."""

    def find(history: History, recorded: Recorded) -> Links:
        trial_id = recorded.event.trial_id
        above = experiment_of(history, trial_id)
        things = [Thing("trial", trial_id), *([experiment(above)] if above else [])]

        def fits(event: Any) -> bool:
            return getattr(event, "trial_id", trial_id) == trial_id and (
                getattr(event, "experiment_id", above) == above
            )

        return _one(history.newest(things, types, before=recorded.position, where=fits))

    return find


def experiment_of(history: History, trial_id: int) -> int | None:
    """The experiment of a trial, once the trial's events have been read."""
    found = history.newest(
        [Thing("trial", trial_id)], (searcher.TrialCreated,), where=lambda e: e.trial_id == trial_id
    )
    return found.event.experiment_id if found else None


def around(allocation_id: str, history: History) -> list[Thing]:
    """What must be read to explain an allocation: itself and its trial."""
    owner = history.trial_of.get(allocation_id)
    own = Thing("allocation", allocation_id)
    return [own] if owner is None else [own, Thing("trial", owner)]


def _of_allocation(*types: type) -> Callable[[History, Recorded], Links]:
    """Find the newest event of these types about the same allocation."""

    def find(history: History, recorded: Recorded) -> Links:
        return _one(_newest_of_run(history, recorded.event.allocation_id, types, recorded.position))

    return find


def _newest_of_run(
    history: History, id: str, types: tuple[type, ...], before: float, after: int = 0
) -> Recorded | None:
    owner = history.trial_of.get(id)

    def fits(event: Any) -> bool:
        if hasattr(event, "allocation_id"):
            return bool(event.allocation_id == id)
        if isinstance(event, scheduler.WorkerLost):
            return event.worker_id in history.hosts_of.get(id, ())
        return getattr(event, "trial_id", None) == owner

    found = history.newest(around(id, history), types, before=before, where=fits)
    return found if found and found.position > after else None


def _ended_run(history: History, recorded: Recorded) -> Links:
    """An allocation ended because its processes exited or, if it never ran, because it became unnecessary."""
    lost = (scheduler.WorkerLost,) if recorded.event.outcome == "worker_lost" else ()
    types = (worker.AllocationExited, searcher.StopRequested, *lost)
    id = recorded.event.allocation_id
    return _one(_newest_of_run(history, id, types, recorded.position))


def _given_up(history: History, recorded: Recorded) -> Links:
    id = recorded.event.allocation_id
    return _one(_newest_of_run(history, id, (scheduler.WorkerLost,), recorded.position))


def _exited(history: History, recorded: Recorded) -> Links:
    """A process exits because it was told to, had nothing to do or gave up; otherwise of its own accord."""
    id = recorded.event.allocation_id
    start = _newest_of_run(history, id, (scheduler.AllocationAssigned,), recorded.position)
    told = (scheduler.KillRequested, scheduler.PreemptRequested, searcher.TrialIdled, trial.ExitedEarly)
    after = start.position if start else 0
    found = _newest_of_run(history, id, told, recorded.position, after)
    return _one(found or _newest_of_run(history, id, (worker.AllocationStarted,), recorded.position) or start)


def _assigned(history: History, recorded: Recorded) -> Links:
    freed = (scheduler.AllocationEnded, worker.WorkerRegistered, scheduler.WorkerSwitched)
    occasion = _occasion(history, recorded, (*freed, scheduler.SlotSwitched))
    event = recorded.event
    if event.trial_id is None:
        things = [Thing("deletions", event.experiment_id)]
        asked = history.newest(
            things,
            (checkpoints.DeletionRequested,),
            before=recorded.position,
            where=lambda e: e.task_id == event.task_id,
        )
    else:
        asked = _newest_of_run(history, event.allocation_id, (searcher.RunRequested,), recorded.position)
    return [*_one(asked), *occasion]


def _preempted(history: History, recorded: Recorded) -> Links:
    """The run that needs the slots, or the searcher's request to stop, or the event that changed the pool."""
    event, before = recorded.event, recorded.position
    if event.wanted_by:
        return _one(_newest_of_run(history, event.wanted_by, (searcher.RunRequested,), before))
    stop = _newest_of_run(history, event.allocation_id, (searcher.StopRequested,), before)
    moved = (searcher.RunRequested, scheduler.JobChanged, scheduler.WorkerSwitched, scheduler.SlotSwitched)
    return _one(stop) or _occasion(history, recorded, moved)


def _killed(history: History, recorded: Recorded) -> Links:
    """The disabling of its agent or slot just before, or else the request to stop the run."""
    cause = history.cause(recorded)
    if cause and type(cause.event) in (scheduler.WorkerSwitched, scheduler.SlotSwitched):
        return [Link(cause)]
    types = (searcher.StopRequested, scheduler.DeadlinePassed, worker.AllocationExited)
    id = recorded.event.allocation_id
    return _one(_newest_of_run(history, id, types, recorded.position)) or _by_cause(history, recorded)


def _operation(history: History, recorded: Recorded) -> Links:
    """The first operation comes with the trial.

    Later ones follow from completed operations, its own or others'.
    """
    event = recorded.event
    if event.seq == 1:
        return _of_trial(searcher.TrialCreated)(history, recorded)
    own = _of_trial(trial.OperationCompleted, where=lambda e, c: c.seq == e.seq - 1)(history, recorded)
    return [*own, *_posted(history, recorded), *_rival(history, recorded)]


def _posted(history: History, recorded: Recorded) -> Links:
    """The request of a custom search method or a script."""
    cause = history.cause(recorded)
    return [Link(cause)] if cause and type(cause.event) in _ASKED_FOR else []


def _rival(history: History, recorded: Recorded) -> Links:
    """Another trial's event that let the search decide about this one."""
    found = _occasion(history, recorded, _MOVES_THE_SEARCH)
    return [link for link in found if link.to.event.trial_id != recorded.event.trial_id]


def _created(history: History, recorded: Recorded) -> Links:
    start = _of_experiment(searcher.ExperimentActivated, searcher.ExperimentCreated)(history, recorded)
    return [*start, *_posted(history, recorded), *_occasion(history, recorded, _MOVES_THE_SEARCH)]


def _activated(history: History, recorded: Recorded) -> Links:
    """An activation at submission is caused by it. A later one is a person's own act."""
    found = _of_experiment(searcher.ExperimentCreated)(history, recorded)
    return [link for link in found if link.to.cause == recorded.cause and recorded.cause]


def _stored(history: History, recorded: Recorded) -> Links:
    return _of_trial(searcher.OperationSet)(history, recorded)


def _going(history: History, recorded: Recorded) -> Links:
    """Retention deletes checkpoints after an experiment's end; deleting an experiment deletes all of them."""
    over = (searcher.ExperimentEnded, searcher.ExperimentDeleting)
    return _of_experiment(*over)(history, recorded) or _by_cause(history, recorded)


def _deleted(history: History, recorded: Recorded) -> Links:
    things = [Thing("deletions", recorded.event.experiment_id)]
    same = lambda e: e.task_id == recorded.event.task_id  # noqa: E731
    asked = (checkpoints.DeletionRequested,)
    return _one(history.newest(things, asked, before=recorded.position, where=same))


_ASKED_FOR = (searcher.OperationsPosted, searcher.TrialRequested)
_MOVES_THE_SEARCH = (trial.OperationCompleted, trial.ExitedEarly, searcher.TrialEnded)
_ENDS_A_TRIAL = (
    scheduler.AllocationEnded,
    searcher.TrialStopping,
    searcher.ExperimentStopping,
    searcher.TrialIdled,
    searcher.RunOpened,
    searcher.TrialOverdue,
    trial.ExitedEarly,
)


def _trial_ended(history: History, recorded: Recorded) -> Links:
    """The end of the trial's last run, unless it was ended while no run existed."""
    last = _of_trial(searcher.RunRequested)(history, recorded)
    for link in last:
        history.newest([Thing("allocation", link.to.event.allocation_id)], ())
    end = _of_trial_or_above(*_ENDS_A_TRIAL)(history, recorded)
    return [*end, *_rival(history, recorded)]


def _judged(history: History, recorded: Recorded) -> Links:
    """The end of the run that is being judged."""
    asked = _of_trial(searcher.RunRequested, where=lambda e, c: c.run == e.run)(history, recorded)
    ended = [
        _newest_of_run(history, link.to.event.allocation_id, (scheduler.AllocationEnded,), recorded.position)
        for link in asked
    ]
    return [Link(found) for found in ended if found]


OF_POOL = (
    scheduler.WorkerWanted,
    scheduler.ProvisionReported,
    scheduler.WorkerReleased,
    scheduler.WorkerDismissed,
)
OF_WORKER = (
    *OF_POOL,
    scheduler.WorkerLost,
    scheduler.WorkerSwitched,
    worker.WorkerRegistered,
    worker.WorkerLeft,
)


def _of_worker(history: History, recorded: Recorded) -> Links:
    """The previous event of the same worker."""
    id = recorded.event.worker_id
    things = [Thing("worker", id)]
    same = lambda e: e.worker_id == id  # noqa: E731
    return _one(history.newest(things, OF_WORKER, before=recorded.position, where=same))


_LINKS: dict[type, Callable[[History, Recorded], Links]] = {
    searcher.ExperimentCreated: _nothing,
    searcher.ExperimentActivated: _activated,
    searcher.ExperimentPaused: _nothing,
    searcher.OperationsPosted: _nothing,
    searcher.TrialRequested: _nothing,
    searcher.ExperimentEnded: _of_experiment(searcher.ExperimentStopping),
    searcher.TrialsDeleted: _of_experiment(checkpoints.ExperimentEmptied),
    searcher.ExperimentDeleted: _of_experiment(checkpoints.ExperimentEmptied, searcher.ExperimentDeleting),
    searcher.TrialCreated: _created,
    searcher.OperationSet: _operation,
    searcher.TrialIdled: _of_trial(trial.OperationCompleted, where=lambda e, c: c.seq == e.seq),
    searcher.RunRequested: _of_trial_or_above(
        searcher.OperationSet, searcher.RunEnded, searcher.ExperimentActivated
    ),
    searcher.RunOpened: _of_trial(searcher.TrialCreated),
    searcher.StopRequested: _of_trial_or_above(
        searcher.TrialStopping,
        searcher.TrialOverdue,
        searcher.ExperimentStopping,
        searcher.ExperimentPaused,
        searcher.ExperimentKillForced,
    ),
    searcher.RunEnded: _judged,
    searcher.TrialStopping: _nothing,
    searcher.TrialEnded: _trial_ended,
    searcher.TrialOverdue: _of_trial(trial.ExitedEarly, searcher.RunOpened),
    scheduler.AllocationAssigned: _assigned,
    scheduler.PreemptRequested: _preempted,
    scheduler.KillRequested: _killed,
    scheduler.AllocationEnded: _ended_run,
    scheduler.DeadlinePassed: _of_allocation(scheduler.PreemptRequested),
    scheduler.WorkerLost: _nothing,
    # The reason names the job that waited. Its story is not linked, since not all who see a pool may see the
    # job.
    scheduler.WorkerWanted: _nothing,
    scheduler.ProvisionReported: _of_worker,
    scheduler.WorkerReleased: _of_worker,
    scheduler.WorkerDismissed: _of_worker,
    scheduler.EngineReported: _nothing,
    scheduler.PoolConfigured: _nothing,
    worker.WorkerRegistered: _of_worker,
    worker.WorkerLeft: _of_worker,
    scheduler.GivenUp: _given_up,
    worker.AllocationStarted: _of_allocation(scheduler.AllocationAssigned),
    worker.AllocationExited: _exited,
    trial.OperationCompleted: _of_trial(searcher.OperationSet, where=lambda e, c: c.seq == e.seq),
    trial.ExitedEarly: _of_trial(searcher.OperationSet),
    trial.CheckpointStored: _stored,
    checkpoints.DeletionRequested: _going,
    checkpoints.DeletionFinished: _deleted,
    metrics.Settled: _of_trial(searcher.TrialEnded),
}
