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
from services.why.history import Entity, History


class Link(msgspec.Struct, frozen=True):
    """One cause of an event."""

    to: Recorded
    aside: bool = False
    """Whether the event was only the trigger. It is shown, but its own causes are not followed."""


Links = list[Link]


def causes(history: History, recorded: Recorded) -> Links:
    """The causes of an event, among those read; empty for what a person or script did on its own."""
    find = _CAUSE_FINDERS.get(type(recorded.event), _recorded_cause)
    return find(history, recorded)


def _as_links(recorded: Recorded | None) -> Links:
    return [Link(recorded)] if recorded else []


def _no_causes(_: History, __: Recorded) -> Links:
    return []


def _recorded_cause(history: History, recorded: Recorded) -> Links:
    return _as_links(history.cause(recorded))


def _trigger(history: History, recorded: Recorded, types: tuple[type, ...]) -> Links:
    cause = history.cause(recorded)
    # Something was free by then, which explains the moment and not the decision, so its own causes are
    # another story.
    return [Link(cause, aside=True)] if cause and type(cause.event) in types else []


def experiment_entity(id: int) -> Entity:
    """The events of an experiment itself."""
    return Entity("experiment", id)


def _newest_of_experiment(*types: type) -> Callable[[History, Recorded], Links]:
    """Find the newest event of these types about the same experiment."""

    def find(history: History, recorded: Recorded) -> Links:
        id = recorded.event.experiment_id
        things = [experiment_entity(id)]
        return _as_links(
            history.find_newest(
                things, types, before=recorded.position, where=lambda e: e.experiment_id == id
            )
        )

    return find


def _newest_of_trial(
    *types: type, where: Callable[[Any, Any], bool] = lambda _, __: True
) -> Callable[[History, Recorded], Links]:
    """Find the newest event of these types about the same trial. `where` takes the event and a candidate."""

    def find(history: History, recorded: Recorded) -> Links:
        event = recorded.event
        matches = lambda e: e.trial_id == event.trial_id and where(event, e)  # noqa: E731
        things = [Entity("trial", event.trial_id)]
        return _as_links(history.find_newest(things, types, before=recorded.position, where=matches))

    return find


def _newest_of_trial_or_experiment(*types: type) -> Callable[[History, Recorded], Links]:
    """Find the newest event of these types about the same trial or its experiment."""

    def find(history: History, recorded: Recorded) -> Links:
        trial_id = recorded.event.trial_id
        experiment_id = experiment_of(history, trial_id)
        things = [Entity("trial", trial_id), *([experiment_entity(experiment_id)] if experiment_id else [])]

        def matches(event: Any) -> bool:
            return getattr(event, "trial_id", trial_id) == trial_id and (
                getattr(event, "experiment_id", experiment_id) == experiment_id
            )

        return _as_links(history.find_newest(things, types, before=recorded.position, where=matches))

    return find


def experiment_of(history: History, trial_id: int) -> int | None:
    """The experiment of a trial, once the trial's events have been read."""
    created = history.find_newest(
        [Entity("trial", trial_id)], (searcher.TrialCreated,), where=lambda e: e.trial_id == trial_id
    )
    return created.event.experiment_id if created else None


def entities_of_allocation(allocation_id: str, history: History) -> list[Entity]:
    """What must be read to explain an allocation: itself and its trial."""
    owner = history.trial_of.get(allocation_id)
    own = Entity("allocation", allocation_id)
    return [own] if owner is None else [own, Entity("trial", owner)]


def _newest_of_allocation(*types: type) -> Callable[[History, Recorded], Links]:
    """Find the newest event of these types about the same allocation."""

    def find(history: History, recorded: Recorded) -> Links:
        return _as_links(_newest_of_run(history, recorded.event.allocation_id, types, recorded.position))

    return find


def _newest_of_run(
    history: History, id: str, types: tuple[type, ...], before: float, after: int = 0
) -> Recorded | None:
    owner = history.trial_of.get(id)

    def matches(event: Any) -> bool:
        if hasattr(event, "allocation_id"):
            return bool(event.allocation_id == id)
        if isinstance(event, scheduler.WorkerLost):
            return event.worker_id in history.workers_of.get(id, ())
        return getattr(event, "trial_id", None) == owner

    newest = history.find_newest(entities_of_allocation(id, history), types, before=before, where=matches)
    return newest if newest and newest.position > after else None


def _allocation_ended(history: History, recorded: Recorded) -> Links:
    """An allocation ended because its processes exited or, if it never ran, because it became unnecessary."""
    # A worker may be lost long after, or without any effect on, a run that had ended by itself.
    worker_lost_types = (scheduler.WorkerLost,) if recorded.event.outcome == "worker_lost" else ()
    types = (worker.AllocationExited, searcher.StopRequested, *worker_lost_types)
    id = recorded.event.allocation_id
    return _as_links(_newest_of_run(history, id, types, recorded.position))


def _allocation_given_up(history: History, recorded: Recorded) -> Links:
    id = recorded.event.allocation_id
    return _as_links(_newest_of_run(history, id, (scheduler.WorkerLost,), recorded.position))


def _allocation_exited(history: History, recorded: Recorded) -> Links:
    """A process exits because it was told to, had nothing to do or gave up; otherwise of its own accord."""
    id = recorded.event.allocation_id
    start = _newest_of_run(history, id, (scheduler.AllocationAssigned,), recorded.position)
    exit_causes = (
        scheduler.KillRequested,
        scheduler.PreemptRequested,
        searcher.TrialIdled,
        trial.ExitedEarly,
    )
    # An earlier run of the same trial had its own requests.
    after = start.position if start else 0
    exit_cause = _newest_of_run(history, id, exit_causes, recorded.position, after)
    return _as_links(
        exit_cause or _newest_of_run(history, id, (worker.AllocationStarted,), recorded.position) or start
    )


def _allocation_assigned(history: History, recorded: Recorded) -> Links:
    freeing_events = (scheduler.AllocationEnded, worker.WorkerRegistered, scheduler.WorkerSwitched)
    trigger = _trigger(history, recorded, (*freeing_events, scheduler.SlotSwitched))
    event = recorded.event
    if event.trial_id is None:
        things = [Entity("deletions", event.experiment_id)]
        request = history.find_newest(
            things,
            (checkpoints.DeletionRequested,),
            before=recorded.position,
            where=lambda e: e.task_id == event.task_id,
        )
    else:
        request = _newest_of_run(history, event.allocation_id, (searcher.RunRequested,), recorded.position)
    return [*_as_links(request), *trigger]


def _preempt_requested(history: History, recorded: Recorded) -> Links:
    """The run that needs the slots, or the searcher's request to stop, or the event that changed the pool."""
    event, before = recorded.event, recorded.position
    if event.wanted_by:
        return _as_links(_newest_of_run(history, event.wanted_by, (searcher.RunRequested,), before))
    stop = _newest_of_run(history, event.allocation_id, (searcher.StopRequested,), before)
    trigger_types = (
        searcher.RunRequested,
        scheduler.JobChanged,
        scheduler.WorkerSwitched,
        scheduler.SlotSwitched,
    )
    return _as_links(stop) or _trigger(history, recorded, trigger_types)


def _kill_requested(history: History, recorded: Recorded) -> Links:
    """The disabling of its agent or slot just before, or else the request to stop the run."""
    cause = history.cause(recorded)
    if cause and type(cause.event) in (scheduler.WorkerSwitched, scheduler.SlotSwitched):
        return [Link(cause)]
    types = (searcher.StopRequested, scheduler.DeadlinePassed, worker.AllocationExited)
    id = recorded.event.allocation_id
    return _as_links(_newest_of_run(history, id, types, recorded.position)) or _recorded_cause(
        history, recorded
    )


def _operation_set(history: History, recorded: Recorded) -> Links:
    """The first operation comes with the trial.

    Later ones follow from completed operations, its own or others'.
    """
    event = recorded.event
    if event.seq == 1:
        return _newest_of_trial(searcher.TrialCreated)(history, recorded)
    own = _newest_of_trial(trial.OperationCompleted, where=lambda e, c: c.seq == e.seq - 1)(history, recorded)
    return [*own, *_search_request(history, recorded), *_other_trial_event(history, recorded)]


def _search_request(history: History, recorded: Recorded) -> Links:
    """The request of a custom search method or a script."""
    cause = history.cause(recorded)
    return [Link(cause)] if cause and type(cause.event) in _SEARCH_REQUESTS else []


def _other_trial_event(history: History, recorded: Recorded) -> Links:
    """Another trial's event that let the search decide about this one."""
    links = _trigger(history, recorded, _SEARCH_INPUTS)
    return [link for link in links if link.to.event.trial_id != recorded.event.trial_id]


def _trial_created(history: History, recorded: Recorded) -> Links:
    start = _newest_of_experiment(searcher.ExperimentActivated, searcher.ExperimentCreated)(history, recorded)
    return [*start, *_search_request(history, recorded), *_trigger(history, recorded, _SEARCH_INPUTS)]


def _experiment_activated(history: History, recorded: Recorded) -> Links:
    """An activation at submission is caused by it. A later one is a person's own act."""
    links = _newest_of_experiment(searcher.ExperimentCreated)(history, recorded)
    return [link for link in links if link.to.cause == recorded.cause and recorded.cause]


def _checkpoint_stored(history: History, recorded: Recorded) -> Links:
    return _newest_of_trial(searcher.OperationSet)(history, recorded)


def _deletion_requested(history: History, recorded: Recorded) -> Links:
    """Retention deletes checkpoints after an experiment's end; deleting an experiment deletes all of them."""
    deletion_causes = (searcher.ExperimentEnded, searcher.ExperimentDeleting)
    return _newest_of_experiment(*deletion_causes)(history, recorded) or _recorded_cause(history, recorded)


def _deletion_finished(history: History, recorded: Recorded) -> Links:
    things = [Entity("deletions", recorded.event.experiment_id)]
    is_same = lambda e: e.task_id == recorded.event.task_id  # noqa: E731
    request_types = (checkpoints.DeletionRequested,)
    return _as_links(history.find_newest(things, request_types, before=recorded.position, where=is_same))


_SEARCH_REQUESTS = (searcher.OperationsPosted, searcher.TrialRequested)
_SEARCH_INPUTS = (trial.OperationCompleted, trial.ExitedEarly, searcher.TrialEnded)
_TRIAL_END_CAUSES = (
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
    last = _newest_of_trial(searcher.RunRequested)(history, recorded)
    for link in last:
        history.find_newest([Entity("allocation", link.to.event.allocation_id)], ())
    end = _newest_of_trial_or_experiment(*_TRIAL_END_CAUSES)(history, recorded)
    return [*end, *_other_trial_event(history, recorded)]


def _run_ended(history: History, recorded: Recorded) -> Links:
    """The end of the run that is being judged."""
    requests = _newest_of_trial(searcher.RunRequested, where=lambda e, c: c.run == e.run)(history, recorded)
    ended = [
        _newest_of_run(history, link.to.event.allocation_id, (scheduler.AllocationEnded,), recorded.position)
        for link in requests
    ]
    return [Link(end) for end in ended if end]


POOL_WORKER_EVENTS = (
    scheduler.WorkerWanted,
    scheduler.ProvisionReported,
    scheduler.WorkerReleased,
    scheduler.WorkerDismissed,
)
WORKER_EVENTS = (
    *POOL_WORKER_EVENTS,
    scheduler.WorkerLost,
    scheduler.WorkerSwitched,
    worker.WorkerRegistered,
    worker.WorkerLeft,
)


def _previous_of_worker(history: History, recorded: Recorded) -> Links:
    """The previous event of the same worker."""
    id = recorded.event.worker_id
    things = [Entity("worker", id)]
    is_same = lambda e: e.worker_id == id  # noqa: E731
    return _as_links(history.find_newest(things, WORKER_EVENTS, before=recorded.position, where=is_same))


_CAUSE_FINDERS: dict[type, Callable[[History, Recorded], Links]] = {
    searcher.ExperimentCreated: _no_causes,
    searcher.ExperimentActivated: _experiment_activated,
    searcher.ExperimentPaused: _no_causes,
    searcher.OperationsPosted: _no_causes,
    searcher.TrialRequested: _no_causes,
    searcher.ExperimentEnded: _newest_of_experiment(searcher.ExperimentStopping),
    searcher.TrialsDeleted: _newest_of_experiment(checkpoints.ExperimentEmptied),
    searcher.ExperimentDeleted: _newest_of_experiment(
        checkpoints.ExperimentEmptied, searcher.ExperimentDeleting
    ),
    searcher.TrialCreated: _trial_created,
    searcher.OperationSet: _operation_set,
    searcher.TrialIdled: _newest_of_trial(trial.OperationCompleted, where=lambda e, c: c.seq == e.seq),
    searcher.RunRequested: _newest_of_trial_or_experiment(
        searcher.OperationSet, searcher.RunEnded, searcher.ExperimentActivated
    ),
    searcher.RunOpened: _newest_of_trial(searcher.TrialCreated),
    searcher.StopRequested: _newest_of_trial_or_experiment(
        searcher.TrialStopping,
        searcher.TrialOverdue,
        searcher.ExperimentStopping,
        searcher.ExperimentPaused,
        searcher.ExperimentKillForced,
    ),
    searcher.RunEnded: _run_ended,
    searcher.TrialStopping: _no_causes,
    searcher.TrialEnded: _trial_ended,
    searcher.TrialOverdue: _newest_of_trial(trial.ExitedEarly, searcher.RunOpened),
    scheduler.AllocationAssigned: _allocation_assigned,
    scheduler.PreemptRequested: _preempt_requested,
    scheduler.KillRequested: _kill_requested,
    scheduler.AllocationEnded: _allocation_ended,
    scheduler.DeadlinePassed: _newest_of_allocation(scheduler.PreemptRequested),
    scheduler.WorkerLost: _no_causes,
    # The reason names the job that waited. Its story is not linked, since not all who see a pool may see the
    # job.
    scheduler.WorkerWanted: _no_causes,
    scheduler.ProvisionReported: _previous_of_worker,
    scheduler.WorkerReleased: _previous_of_worker,
    scheduler.WorkerDismissed: _previous_of_worker,
    scheduler.EngineReported: _no_causes,
    scheduler.PoolConfigured: _no_causes,
    worker.WorkerRegistered: _previous_of_worker,
    worker.WorkerLeft: _previous_of_worker,
    scheduler.GivenUp: _allocation_given_up,
    worker.AllocationStarted: _newest_of_allocation(scheduler.AllocationAssigned),
    worker.AllocationExited: _allocation_exited,
    trial.OperationCompleted: _newest_of_trial(searcher.OperationSet, where=lambda e, c: c.seq == e.seq),
    trial.ExitedEarly: _newest_of_trial(searcher.OperationSet),
    trial.CheckpointStored: _checkpoint_stored,
    checkpoints.DeletionRequested: _deletion_requested,
    checkpoints.DeletionFinished: _deletion_finished,
    metrics.Settled: _newest_of_trial(searcher.TrialEnded),
}
