"""How each event changes the metrics service's state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from det_contracts import subjects
from det_contracts.envelope import Recorded
from det_contracts.events import metrics, scheduler, searcher
from det_contracts.reports import MAX_GROUPS_PER_TRIAL, ReportBatch
from services.kit.folds import Fold, of_events
from services.metrics.domain.judge import Judge
from services.metrics.domain.sharing import KEY, Sharing, Stage, sharing_of
from services.metrics.domain.state import (
    NO_EXPERIMENT,
    DeletedExperiment,
    EndedTrial,
    JudgedBatch,
    LogLines,
    Source,
    State,
    Trial,
    Trimmed,
    dropped_through,
    experiment_of_task,
    finding_key,
    group_key,
    source_key,
    trimmed_through,
)

Key = tuple[str, Any]
replace = msgspec.structs.replace


def _fold_batch(state: State, recorded: Recorded) -> Iterable[Key]:
    event: JudgedBatch = recorded.event
    if isinstance(event.batch, LogLines):
        return _fold_log_lines(state, event, event.batch, recorded.position)
    return _fold_reports(state, event, event.batch, recorded.position)


def _fold_log_lines(state: State, event: JudgedBatch, batch: LogLines, position: int) -> Iterable[Key]:
    key = source_key(batch)
    counted = batch.offset >= 0
    source = state.sources.get(key) if counted else None
    # A worker that did not get the acknowledgement sends a batch again, perhaps after the two minutes for
    # which the broker remembers ids.
    is_new = not counted or source is None or batch.offset > source.offset
    is_valid = is_new and not _is_deleted(state, batch.task_id)
    # A source's progress depends on LOGS alone, whenever the decision to trim its lines was made.
    event.expired = is_valid and position <= trimmed_through(state)
    event.accepted = is_valid and not event.expired
    if is_valid and counted:
        yield from state.put_source(key, Source(batch.offset))
    elif counted and not is_valid:
        # A replica that folded the batch before the deletion has this record, and may have saved it.
        yield "sources", key


def _fold_reports(state: State, event: JudgedBatch, batch: ReportBatch, position: int) -> Iterable[Key]:
    trial = state.trials.get(batch.trial_id) or Trial(id=batch.trial_id)
    event.accepted = trial.is_new(batch) and batch.experiment_id not in state.gone
    if batch.experiment_id in state.gone:
        yield from _possibly_saved_keys(batch)
    if not event.accepted:
        return
    free_groups = MAX_GROUPS_PER_TRIAL - state.groups_of.count(trial.id)
    judge = Judge(trial, state.groups, free_groups, batch, position, event.size)
    state.trials[trial.id] = judge.judge_batch()
    # A rebuild reads the reports again, and must forget the same points.
    event.keeps_points = position > dropped_through(state, trial.id)
    yield "trials", trial.id
    for key, group in judge.groups.items():
        yield from state.put_group(trial.id, key, group)
    for finding in judge.findings:
        key = finding_key(trial.id, finding.number)
        state.findings[key] = finding
        yield "findings", key
    event.pieces, event.archive = judge.pieces, judge.archive


def _possibly_saved_keys(batch: ReportBatch) -> Iterable[Key]:
    """Keys that a replica may have, and may have saved, if it folded a batch before the deletion."""
    yield "trials", batch.trial_id
    for name in {series.group for series in batch.series}:
        yield "groups", group_key(batch.trial_id, name)


def _decision_recorded(state: State, event: metrics.Validated | metrics.ReportRefused) -> Iterable[Key]:
    trial = state.trials.get(event.trial_id) or Trial(id=event.trial_id)
    # CONTROL and REPORTS are folded independently, so decisions may be read before the reports that they are
    # about.
    stated = max(trial.stated, event.number)
    for number in range(trial.stated + 1, stated + 1):
        # If CONTROL was folded first, there is no finding here, but the replica that last saved may have had
        # one.
        state.findings.pop(key := finding_key(trial.id, number), None)
        yield "findings", key
    state.trials[trial.id] = replace(trial, stated=stated)
    yield "trials", trial.id


def _trial_ended(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.TrialEnded = recorded.event
    # A lost script that reports how it ended has ended before, and its trial was settled then. Popped before
    # the end is stored: that loads the other records of the trial.
    yield from _reopened(state, event)
    state.ended[event.trial_id] = EndedTrial(event.trial_id, recorded.position)


def _reopened(state: State, event: searcher.RunOpened | searcher.TrialEnded) -> Iterable[Key]:
    state.settled.pop(event.trial_id, None)
    yield "settled", event.trial_id
    state.ended.pop(event.trial_id, None)
    yield "ended", event.trial_id


def _settled(state: State, event: metrics.Settled) -> Iterable[Key]:
    ended = state.ended.get(event.trial_id)
    # The trial may have been opened or have ended again between the decision and its place in the log.
    if event.end and (ended is None or 0 < ended.position != event.end):
        return
    state.ended.pop(event.trial_id, None)
    yield "ended", event.trial_id
    state.settled[event.trial_id] = EndedTrial(event.trial_id)
    yield "settled", event.trial_id


def _points_dropped(state: State, event: metrics.PointsDropped) -> Iterable[Key]:
    through = max(event.through, dropped_through(state, event.trial_id))
    state.dropped[event.trial_id] = Trimmed(through)
    yield "dropped", event.trial_id


def _logs_trimmed(state: State, event: metrics.LogsTrimmed) -> Iterable[Key]:
    state.trimmed[subjects.LOGS] = Trimmed(max(event.through, trimmed_through(state)))
    yield "trimmed", subjects.LOGS


def _trials_deleted(state: State, event: searcher.TrialsDeleted) -> Iterable[Key]:
    yield from _delete_trials(state, event.experiment_id, event.trial_ids)
    for task_id in event.task_ids:
        yield from state.drop_sources(event.experiment_id, task_id)


def _task_forgotten(state: State, event: scheduler.TaskForgotten) -> Iterable[Key]:
    return state.drop_sources(NO_EXPERIMENT, event.task_id)


def _experiment_deleted(state: State, event: searcher.ExperimentDeleted) -> Iterable[Key]:
    if event.state == "DELETED":
        yield from _delete_trials(state, event.experiment_id, event.trial_ids)
        yield from state.drop_sources(event.experiment_id)


def _delete_trials(state: State, experiment_id: int, trial_ids: Iterable[int]) -> Iterable[Key]:
    state.gone[experiment_id] = DeletedExperiment(experiment_id)
    yield "gone", experiment_id
    for id in trial_ids:
        yield from state.drop_trial(id)


def _shards_set(state: State, event: metrics.ShardsSet) -> Iterable[Key]:
    sharing = sharing_of(state.sharing)
    # The number only grows: trials of an earlier stage stay where they are (decision 77).
    if event.shards > sharing.shards:
        stage = Stage(event.shards, event.first_trial, event.first_experiment)
        state.sharing[KEY] = Sharing((*sharing.stages, stage))
    yield "sharing", KEY


def _shard_joined(state: State, event: metrics.ShardJoined) -> Iterable[Key]:
    sharing = sharing_of(state.sharing)
    if event.shards == sharing.shards and event.shard not in sharing.joined:
        state.sharing[KEY] = replace(sharing, joined=(*sharing.joined, event.shard))
    yield "sharing", KEY


def _is_deleted(state: State, task_id: str) -> bool:
    experiment_id = experiment_of_task(task_id)
    return experiment_id != NO_EXPERIMENT and experiment_id in state.gone


_FOLDS: dict[type, Callable[[State, Any], Iterable[Key]]] = {
    metrics.Validated: _decision_recorded,
    metrics.ReportRefused: _decision_recorded,
    metrics.Settled: _settled,
    metrics.LogsTrimmed: _logs_trimmed,
    metrics.PointsDropped: _points_dropped,
    metrics.ShardsSet: _shards_set,
    metrics.ShardJoined: _shard_joined,
    scheduler.TaskForgotten: _task_forgotten,
    searcher.RunOpened: _reopened,
    searcher.TrialsDeleted: _trials_deleted,
    searcher.ExperimentDeleted: _experiment_deleted,
}

evolve = Fold[State]({**of_events(_FOLDS), searcher.TrialEnded: _trial_ended, JudgedBatch: _fold_batch})
"""Folds one event of any of the three streams; returns the keys of the changed records."""
