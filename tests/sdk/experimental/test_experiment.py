"""An experiment as the client sees it."""

from __future__ import annotations

import pytest

from determined.common.api import errors
from determined.experimental import _experiment, client

PATH = "/api/v1/experiments/7"


@pytest.fixture
def experiment(connection):
    return connection.get_experiment(7)


def in_states(master, *states):
    answers = [{"experiment": {"id": 7, "state": f"STATE_{state}", "config": {}}} for state in states]
    master.answer("GET", PATH, *answers)


@pytest.mark.parametrize("last", ["COMPLETED", "CANCELED", "ERROR", "DELETED"])
def test_wait_until_it_has_ended(master, experiment, last):
    in_states(master, "QUEUED", "RUNNING", "STOPPING_COMPLETED", last)
    assert experiment.wait(interval=0) is client.ExperimentState[last]
    assert len(master.calls_to("GET", PATH)) == 4


def test_wait_for_a_paused_one_is_an_error(master, experiment):
    in_states(master, "RUNNING", "PAUSED")
    with pytest.raises(ValueError, match=r"7 is in paused state\. Make sure the experiment is active\."):
        experiment.wait(0)


def test_wait_says_now_and_then_that_it_waits(master, experiment, monkeypatch, capsys):
    in_states(master, "RUNNING", "RUNNING", "COMPLETED")
    experiment.wait(0)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(_experiment, "_WORD_EVERY_S", 0)
    in_states(master, "RUNNING", "RUNNING", "COMPLETED")
    experiment.wait(0)
    shown = capsys.readouterr()
    assert (shown.out, len(shown.err.splitlines())) == ("", 2)


def test_a_wrong_id_shows_at_the_first_use(master, experiment):
    with pytest.raises(errors.NotFoundException):
        experiment.get_config()


def test_first_trial(master, experiment):
    in_states(master, "RUNNING")
    none, first_trial = {"trials": []}, {"trials": [{"id": 4}]}
    master.answer("GET", f"{PATH}/trials", none, first_trial)
    assert experiment.await_first_trial(0).id == 4
    query = master.calls_to("GET", f"{PATH}/trials")[0].query
    assert (query["sortBy"], query["orderBy"]) == (["SORT_BY_START_TIME"], ["ORDER_BY_ASC"])


def test_first_trial_of_one_that_ends_without(master, experiment):
    in_states(master, "RUNNING", "ERROR")
    master.answer("GET", f"{PATH}/trials", {"trials": []})
    with pytest.raises(RuntimeError, match="no trial"):
        experiment.await_first_trial(0)


def test_trials_of_all_pages(master, experiment, lists):
    lists(f"{PATH}/trials", "trials", [{"id": number} for number in range(1, 6)])
    assert [trial.id for trial in experiment.get_trials()] == [1, 2, 3, 4, 5]
    first = master.calls_to("GET", f"{PATH}/trials")[0].query
    assert (first["sortBy"], first["orderBy"]) == (["SORT_BY_ID"], ["ORDER_BY_ASC"])
    experiment.get_trials(client.TrialSortBy.DURATION, client.TrialOrderBy.DESC)
    assert master.calls[-1].query["sortBy"] == ["SORT_BY_DURATION"]
    assert master.calls[-1].query["orderBy"] == ["ORDER_BY_DESC"]


@pytest.fixture
def scored(master, lists, checkpoint_record):
    """Trial 1: 0.5 and 0.1; trial 2: 0.3; trial 3: no metric; trial 4: better, but deleted."""

    def score(searcher):
        checkpoints = [
            checkpoint_record("a", trial=1, loss=0.5, acc=0.9),
            checkpoint_record("b", trial=1, loss=0.1, acc=0.2),
            checkpoint_record("c", trial=2, loss=0.3, acc=0.8),
            checkpoint_record("d", trial=3),
            checkpoint_record("e", trial=4, state="DELETED", loss=0.01, acc=1),
        ]
        lists(f"{PATH}/checkpoints", "checkpoints", checkpoints)
        config = {"searcher": searcher}
        master.answer("GET", PATH, {"experiment": {"id": 7, "state": "STATE_COMPLETED", "config": config}})

    return score


def uuids(checkpoints):
    return [checkpoint.uuid for checkpoint in checkpoints]


def test_best_checkpoints_by_the_searcher(scored, experiment):
    scored({"metric": "loss"})
    assert uuids(experiment.top_n_checkpoints(9)) == ["b", "c", "d"]
    assert uuids(experiment.top_n_checkpoints(2)) == ["b", "c"]
    assert experiment.top_checkpoint().uuid == "b"
    assert uuids(experiment.top_n_checkpoints(9, smaller_is_better=False)) == ["b", "c", "d"]


def test_best_checkpoints_where_larger_is_better(scored, experiment):
    scored({"metric": "loss", "smaller_is_better": False})
    assert uuids(experiment.top_n_checkpoints(9)) == ["a", "c", "d"]


def test_best_checkpoints_by_another_metric(scored, experiment):
    scored({"metric": "loss"})
    assert uuids(experiment.top_n_checkpoints(9, "acc", False)) == ["a", "c", "d"]
    assert uuids(experiment.top_n_checkpoints(9, "acc", True)) == ["b", "c", "d"]
    assert uuids(experiment.top_n_checkpoints(9, "acc")) == ["a", "c", "d"]
    assert experiment.top_checkpoint(sort_by="acc", smaller_is_better=True).uuid == "b"


def test_a_metric_that_no_checkpoint_has_is_warned_of(scored, experiment, caplog):
    """Usually its name is misspelled, and an arbitrary checkpoint would pass for the best."""
    scored({"metric": "loss"})
    experiment.top_n_checkpoints(9, "acc", False)
    assert caplog.text == ""
    assert uuids(experiment.top_n_checkpoints(9, "accc", False)) == ["a", "c", "d"]
    assert "no checkpoint has a validation metric 'accc'" in caplog.text
    assert "they have 'acc', 'loss'" in caplog.text


def test_no_checkpoint(master, experiment, lists):
    in_states(master, "COMPLETED")
    lists(f"{PATH}/checkpoints", "checkpoints", [])
    with pytest.raises(AssertionError, match="No checkpoint found for experiment 7"):
        experiment.top_checkpoint(sort_by="loss", smaller_is_better=True)


def test_no_metric_in_the_configuration(scored, experiment):
    scored({})
    with pytest.raises(ValueError, match="sort_by"):
        experiment.top_n_checkpoints(1)


@pytest.mark.parametrize("verb", ["activate", "pause", "cancel", "kill", "archive", "unarchive"])
def test_verbs(master, experiment, verb):
    master.answer("POST", f"{PATH}/{verb}", {})
    assert getattr(experiment, verb)() is None
    assert len(master.calls_to("POST", f"{PATH}/{verb}")) == 1


def test_delete_and_config(master, experiment):
    master.answer("DELETE", PATH, {})
    assert experiment.delete() is None
    master.answer("GET", PATH, {"experiment": {"config": {"name": "x"}}})
    assert experiment.get_config() == {"name": "x"}
