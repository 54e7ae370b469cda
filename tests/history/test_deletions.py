"""What is stated about a deleted experiment afterwards is folded, and brings nothing of it back.

Facts of scripts and workers may come late or twice, and a service may have decided before the searcher's
deletion.
"""

from pathlib import Path

import msgspec
import pytest

from det_contracts import codec, ids, subjects
from det_contracts.events import checkpoints, metrics
from det_contracts.events.searcher import ExperimentDeleted, TrialCreated, TrialsDeleted
from det_contracts.events.trial import CheckpointStored
from services.kit.records import read_event
from tests.history.facts import ALL
from tests.history.recording import read

EXPERIMENT = 1
LATE = ("trial", "worker", "metrics", "checkpoints")
"""Whose events may lie behind the deletion. The scheduler has stated all of its own before the trials end."""
TABLES = ("experiments", "trials", "checkpoints", "validations", "ended", "settled")


@pytest.fixture(scope="module")
def log():
    """A recorded log."""
    _, streams = read(Path(__file__).parent / "2026-11.jsonl.gz")
    return [read_event(message, subjects.CONTROL) for message in streams[subjects.CONTROL]]


@pytest.fixture(scope="module")
def trials(log):
    """The trials of the experiment that is deleted, and their tasks."""
    events = [recorded.event for recorded in log if isinstance(recorded.event, TrialCreated)]
    return {event.trial_id: event.task_id for event in events if event.experiment_id == EXPERIMENT}


@pytest.fixture(scope="module")
def late_events(log, trials):
    """What others than the searcher have stated about it, and what this log has no example of."""
    recorded = [r.event for r in log if codec.subject_of(r.event).split(".")[1] in LATE]
    about = [event for event in recorded if is_about(event, trials)]
    uuid = next(event.uuid for event in about if isinstance(event, CheckpointStored))
    task = {"task_id": ids.deletion_task_id(EXPERIMENT, 99), "experiment_id": EXPERIMENT, "uuids": (uuid,)}
    return [
        # The checkpoints service states that it is emptied once, and the searcher deletes nothing before.
        # Which end is settled is not said in logs this old.
        *(event for event in about if not isinstance(event, checkpoints.ExperimentEmptied | metrics.Settled)),
        checkpoints.DeletionRequested(**task, reason="by ann", pool="default"),
        checkpoints.MetadataSet(uuid, {"a": 1}, "by ann"),
        checkpoints.FilesListed(uuid, {}, "seen"),
        checkpoints.DeletionFinished(**task, deleted=True, reason="by ann"),
        metrics.Settled(trial_id=next(iter(trials)), reason="judged", end=1),
    ]


def is_about(event, trials):
    """Whether an event or a record is about the experiment."""
    return (
        getattr(event, "experiment_id", None) == EXPERIMENT
        or getattr(event, "trial_id", None) in trials
        or str(getattr(event, "allocation_id", "")).startswith(f"{EXPERIMENT}.")
    )


@pytest.mark.parametrize("owner", ALL)
def test_late_events_bring_nothing_of_a_deleted_experiment_back(log, trials, late_events, owner):
    rules = ALL[owner]
    state = rules.state()
    for recorded in log:
        list(rules.evolve(state, recorded))
    end = log[-1]
    for event in [
        TrialsDeleted(EXPERIMENT, tuple(trials), tuple(trials.values()), "deleted by bob"),
        ExperimentDeleted(EXPERIMENT, "DELETED", "deleted by bob"),
        *late_events,
    ]:
        end = msgspec.structs.replace(end, event=event, position=end.position + 1)
        list(rules.evolve(state, end))
    assert {type(event) for event in late_events} > {metrics.Validated, CheckpointStored}
    for table in TABLES:
        records = getattr(state, table, {}).items()
        back = [id for id, record in records if is_about(record, trials) or (table, id) == ("experiments", 1)]
        assert not back, table
