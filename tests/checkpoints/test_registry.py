"""Registered checkpoints, and files that go one by one: what retention makes of them."""

import pytest

from det_contracts.commands import (
    DeleteCheckpoints,
    ListFiles,
    RemoveModel,
    RemoveVersion,
    SetModel,
    SetVersion,
)
from det_contracts.events import checkpoints, metrics, searcher
from det_contracts.problems import Refused
from services.checkpoints.app import RULES
from services.kit.rules import Call
from services.kit.testing import Fold
from tests.checkpoints.test_deletion import created, of, stored, task_ended


@pytest.fixture
def fold():
    """Trial 1 with checkpoints a and b, not over; model 1."""
    fold = Fold(RULES)
    made = searcher.TrialCreated(
        trial_id=1, experiment_id=1, request_id="r", task_id="1.r1", seed=0, hparams={}, reason="asked"
    )
    fold.apply(created(1), made, stored("a", 1), stored("b", 2))
    rule(fold, SetModel(name="m", user="ann"))
    return fold


def rule(fold, command):
    result = RULES.commands[type(command)](fold.state, command, Call("c", 0.0))
    fold.apply(*result.events)
    return result


def end(fold):
    fold.apply(searcher.ExperimentEnded(1, "COMPLETED", "done"), metrics.Settled(trial_id=1, reason=""))
    return of(checkpoints.DeletionRequested, fold.decide())


def test_retention_keeps_checkpoints_of_model_versions(fold):
    rule(fold, SetVersion(model_id=1, checkpoint="a", user="ann"))
    assert end(fold) == []
    rule(fold, RemoveModel(model_id=1, user="ann"))
    (deletion,) = of(checkpoints.DeletionRequested, fold.decide())
    assert deletion.uuids == ("a",)


def test_an_experiment_with_versions_cannot_be_emptied(fold):
    rule(fold, SetVersion(model_id=1, checkpoint="a", user="ann"))
    end(fold)
    fold.apply(searcher.ExperimentDeleting(1, "deleted by bob"))
    (outcome,) = of(checkpoints.ExperimentEmptied, fold.decide())
    assert not outcome.emptied
    assert "registered as model versions, such as a" in outcome.reason


def test_files_go_and_the_rest_is_subject_to_retention(fold):
    (request,) = rule(fold, DeleteCheckpoints(uuids=("a",), globs=("*.pt",), user="ann")).events
    assert (request.uuids, request.globs) == (("a",), ("*.pt",))
    rule(fold, ListFiles(uuid="a", resources={"b": 2}, task_id=request.task_id))
    finished = of(checkpoints.DeletionFinished, fold.apply(task_ended(1)).decide())
    assert [(deletion.deleted, deletion.globs) for deletion in finished] == [(True, ("*.pt",))]
    checkpoint = fold.state.checkpoints["a"]
    assert (checkpoint.state, checkpoint.going, checkpoint.tries) == ("PARTIALLY_DELETED", False, 0)
    (again,) = end(fold)
    assert (again.uuids, again.globs) == (("a",), None)


def test_only_the_task_that_was_asked_tells_what_is_left(fold):
    with pytest.raises(Refused, match="does not delete checkpoint"):
        rule(fold, ListFiles(uuid="a", resources={}, task_id="1.gc-1"))


def test_a_request_is_refused_whole(fold):
    rule(fold, SetVersion(model_id=1, checkpoint="a", user="ann"))
    for uuids, message in ((("b", "a"), "registered"), (("b", "none"), "not found")):
        with pytest.raises(Refused, match=message):
            rule(fold, DeleteCheckpoints(uuids=uuids, user="ann"))
    assert not fold.state.checkpoints["b"].going
    (listing,) = rule(fold, DeleteCheckpoints(uuids=("a",), globs=(), user="ann")).events
    assert listing.globs == ()


def test_a_checkpoint_whose_files_are_only_listed_is_used_as_ever(fold):
    (request,) = rule(fold, DeleteCheckpoints(uuids=("a",), globs=(), user="ann")).events
    rule(fold, SetVersion(model_id=1, checkpoint="a", user="ann"))
    rule(fold, RemoveVersion(model_id=1, number=1, user="ann"))
    rule(fold, ListFiles(uuid="a", resources={"a": 7, "c": 1}, task_id=request.task_id))
    (whole,) = rule(fold, DeleteCheckpoints(uuids=("a",), user="ann")).events
    fold.apply(task_ended(1)).decide()
    checkpoint = fold.state.checkpoints["a"]
    assert (checkpoint.going, checkpoint.state, checkpoint.tries, checkpoint.task) == (
        True,
        "COMPLETED",
        1,
        whole.task_id,
    )
    assert checkpoint.resources == {"a": 7, "c": 1}


def test_what_is_listed_when_its_experiment_ends_is_subject_to_retention(fold):
    rule(fold, DeleteCheckpoints(uuids=("a",), globs=(), user="ann"))
    (superfluous,) = end(fold)
    assert (superfluous.uuids, superfluous.globs) == (("a",), None)


def test_what_a_task_is_at_work_on_is_not_asked_for_again(fold):
    rule(fold, DeleteCheckpoints(uuids=("a",), globs=("*.pt",), user="ann"))
    (whole,) = rule(fold, DeleteCheckpoints(uuids=("a",), user="ann")).events
    assert whole.globs is None
    fold.apply(task_ended(1)).decide()
    assert fold.state.checkpoints["a"].going, "the second task is still at work"
    fold.apply(task_ended(2)).decide()
    assert (fold.state.checkpoints["a"].going, fold.state.checkpoints["a"].state) == (False, "DELETED")


def test_of_what_is_removed_file_by_file_the_list_stays(fold):
    (request,) = rule(fold, DeleteCheckpoints(uuids=("a",), globs=("**/*",), user="ann")).events
    rule(fold, ListFiles(uuid="a", resources={}, task_id=request.task_id))
    fold.apply(task_ended(1)).decide()
    checkpoint = fold.state.checkpoints["a"]
    assert (checkpoint.state, checkpoint.going, checkpoint.resources, checkpoint.size_bytes) == (
        "DELETED",
        False,
        {"a": 7},
        0,
    )
    assert fold.state.tallies["DELETED"].size_bytes == 0


def test_what_is_deleted_as_a_whole_is_not_asked_for_again(fold):
    rule(fold, DeleteCheckpoints(uuids=("b",), user="ann"))
    assert rule(fold, DeleteCheckpoints(uuids=("b",), user="ann")).events == []


def test_what_an_open_experiment_starts_from_stays(fold):
    fold.apply(created(2, source="a"))
    with pytest.raises(Refused, match="experiment 2, which has not ended, starts from"):
        rule(fold, DeleteCheckpoints(uuids=("a",), user="ann"))
