"""Deleting an experiment: its checkpoints go first."""

import msgspec
import pytest

from det_contracts import ids
from det_contracts.commands import DeleteCheckpoints
from det_contracts.events import checkpoints, metrics, scheduler, searcher, trial
from services.checkpoints.app import RULES
from services.checkpoints.domain import TRIES
from services.kit.rules import Call
from services.kit.testing import Fold

CONFIG = {
    "checkpoint_storage": {"save_experiment_best": 0, "save_trial_best": 1, "save_trial_latest": 1},
    "searcher": {"smaller_is_better": True},
}


def created(id, source=None):
    return searcher.ExperimentCreated(
        experiment_id=id,
        user="ann",
        config=CONFIG,
        original_config="",
        source_checkpoint=source,
        reason="asked",
    )


def stored(uuid, steps):
    return trial.CheckpointStored(
        trial_id=1,
        experiment_id=1,
        run=1,
        task_id="1.r1",
        allocation_id="1.r1.1",
        uuid=uuid,
        resources={"a": 7},
        metadata={},
        steps_completed=steps,
    )


def task_ended(number, outcome="succeeded"):
    allocation = ids.allocation_id(ids.deletion_task_id(1, number), 1)
    return scheduler.AllocationEnded(
        allocation_id=allocation, kind="CHECKPOINT_GC", run=1, outcome=outcome, reason=f"it {outcome}"
    )


def of(kind, events):
    return [e for e in events if isinstance(e, kind)]


def trial_created():
    return searcher.TrialCreated(
        trial_id=1, experiment_id=1, request_id="r", task_id="1.r1", seed=0, hparams={}, reason="asked"
    )


@pytest.fixture
def fold():
    fold = Fold(RULES)
    made = trial_created()
    fold.apply(
        created(1), made, stored("a", 1), stored("b", 2), searcher.ExperimentEnded(1, "COMPLETED", "done")
    )
    fold.decide()
    return fold


CALL = Call("c", 1.0)
DELETING = searcher.ExperimentDeleting(1, "deleted by bob")


def ran():
    return scheduler.AllocationEnded(
        allocation_id="1.r1.1", kind="TRIAL", trial_id=1, run=1, outcome="succeeded", reason="done"
    )


def test_event_files_go_with_the_checkpoints(fold):
    fold.apply(ran()).decide()
    (deletion,) = fold.apply(DELETING).decide()
    assert (set(deletion.uuids), deletion.sweep) == ({"a", "b"}, True)
    decided = fold.apply(task_ended(1)).decide()
    assert [type(e) for e in decided] == [checkpoints.DeletionFinished, checkpoints.ExperimentEmptied]
    assert of(checkpoints.ExperimentEmptied, decided)[0].emptied


def test_without_a_checkpoint_a_storage_out_of_reach_keeps_no_experiment():
    fold = Fold(RULES)
    fold.apply(
        created(1), trial_created(), ran(), searcher.ExperimentEnded(1, "ERROR", "no storage"), DELETING
    )
    (deletion,) = fold.decide()
    assert (deletion.uuids, deletion.sweep) == ((), True)
    for number in range(1, 1 + TRIES):
        decided = fold.apply(task_ended(number, "failed")).decide()
    (emptied,) = of(checkpoints.ExperimentEmptied, decided)
    assert emptied.emptied
    assert "never had a checkpoint" in emptied.reason


def test_event_files_go_also_when_there_is_no_checkpoint(fold):
    fold.apply(ran(), DELETING).decide()
    fold.apply(task_ended(1)).decide()
    fold.apply(searcher.ExperimentDeleted(1, "DELETE_FAILED", "said by hand"))
    fold.state.experiments[1] = msgspec.structs.replace(fold.state.experiments[1], swept=False)
    (deletion,) = fold.apply(DELETING).decide()
    assert (deletion.uuids, deletion.sweep) == ((), True)
    for number in range(2, 2 + TRIES):
        decided = fold.apply(task_ended(number, "failed")).decide()
    (emptied,) = of(checkpoints.ExperimentEmptied, decided)
    assert not emptied.emptied
    assert "event files" in emptied.reason


def test_everything_goes_and_then_it_is_empty(fold):
    (deletion,) = fold.apply(DELETING).decide()
    assert set(deletion.uuids) == {"a", "b"}
    assert deletion.reason == "experiment 1 is being deleted"
    decided = fold.apply(task_ended(1)).decide()
    (emptied,) = of(checkpoints.ExperimentEmptied, decided)
    assert emptied.emptied
    fold.apply(searcher.ExperimentDeleted(1, "DELETED", "gone")).decide()
    state = fold.state
    assert (state.checkpoints, state.trials, state.experiments) == ({}, {}, {})


def test_an_experiment_without_checkpoints_is_empty_at_once():
    fold = Fold(RULES).apply(created(1), searcher.ExperimentEnded(1, "CANCELED", "done"), DELETING)
    (emptied,) = fold.decide()
    assert emptied.emptied


def test_files_that_stay_fail_the_deletion_and_may_be_tried_again(fold):
    fold.apply(DELETING).decide()
    decided = []
    for number in range(1, TRIES + 1):
        decided = fold.apply(task_ended(number, "failed")).decide()
    (emptied,) = of(checkpoints.ExperimentEmptied, decided)
    assert not emptied.emptied
    assert "2 checkpoints could not be deleted, a: not deleted: it failed" in emptied.reason
    (deletion,) = fold.apply(DELETING).decide()
    assert set(deletion.uuids) == {"a", "b"}


def test_what_another_experiment_starts_from_is_not_deleted(fold):
    decided = fold.apply(created(2, source="b"), DELETING).decide()
    (emptied,) = decided
    assert not emptied.emptied
    assert emptied.reason == "experiment 2, which has not ended, starts from its checkpoint b"
    assert fold.state.checkpoints["a"].state == "COMPLETED"


def test_a_changed_retention_counts_from_then_on(fold):
    assert not fold.decide()
    changes = {
        "checkpoint_storage.save_trial_best": 0,
        "checkpoint_storage.save_trial_latest": 0,
        "name": "x",
    }
    fold.apply(searcher.ExperimentRevised(1, changes, "changed by bob")).decide()
    keep = fold.state.experiments[1].keep
    assert (keep.trial_best, keep.trial_latest) == (0, 0)


def test_what_was_only_kept_for_a_deleted_experiment_goes(fold):
    fold.apply(metrics.Settled(trial_id=1, reason="judged"), created(2, source="b"))
    changes = {"checkpoint_storage.save_trial_best": 0, "checkpoint_storage.save_trial_latest": 0}
    (revised,) = fold.apply(searcher.ExperimentRevised(1, changes, "changed by bob")).decide()
    assert revised.uuids == ("a",)
    fold.apply(task_ended(1)).decide()
    gone = searcher.ExperimentDeleted(2, "DELETED", "gone")
    (deletion,) = fold.apply(searcher.ExperimentEnded(2, "CANCELED", "killed"), gone).decide()
    assert deletion.uuids == ("b",)


FORGOTTEN = {
    "its trials": [searcher.TrialsDeleted(1, (1,), ("1.r1",), "deleted by bob")],
    "the whole": [
        searcher.TrialsDeleted(1, (1,), ("1.r1",), "deleted by bob"),
        searcher.ExperimentDeleted(1, "DELETED", "deleted by bob"),
    ],
}


@pytest.mark.parametrize("before", ["its request", "its end"])
@pytest.mark.parametrize("forgotten", FORGOTTEN.values(), ids=FORGOTTEN)
def test_an_experiment_may_be_forgotten_between_a_decision_and_its_place_in_the_log(fold, forgotten, before):
    """A script may store a checkpoint, and its owner have it deleted, until its experiment is gone."""
    command = DeleteCheckpoints(uuids=("a",), user="ann")
    (request,) = fold.rules.commands[DeleteCheckpoints](fold.state, command, CALL).events
    fold.apply(*([*forgotten, request] if before == "its request" else [request, *forgotten]))
    assert not fold.decide()
    decided = fold.apply(task_ended(1)).decide()
    assert [event.deleted for event in of(checkpoints.DeletionFinished, decided)] == [True]
    assert not fold.state.deletions
