"""Experiments: states, user actions, how they end (scheduling spec, 8.1 and 8.2)."""

import pytest

from det_contracts.commands import ChangeExperiment, CreateExperiment, KillTrial
from det_contracts.events import searcher, trial
from det_contracts.problems import Refused

SINGLE = {"name": "single", "max_length": 10}
RANDOM = {"name": "random", "max_length": 10, "max_trials": 3}


def state_of(searching, id=1):
    return searching.state.experiments[id].state


def change(searching, action, id=1):
    searching.fold.rule(ChangeExperiment(experiment_id=id, action=action, user="bob"))
    return searching.decide()


def of(kind, events):
    return [e for e in events if isinstance(e, kind)]


def test_a_paused_experiment_has_trials_that_ask_for_nothing(searching):
    searching.submit(RANDOM, activate=False)
    assert state_of(searching) == "PAUSED"
    assert len(searching.state.trials) == 3
    assert all(t.allocation_id is None for t in searching.state.trials.values())
    requested = change(searching, "activate")
    assert [r.trial_id for r in of(searcher.RunRequested, requested)] == [1, 2, 3]


def test_the_same_request_key_answers_with_the_first_experiment(searching):
    searching.submit(SINGLE)
    config = {"resources": {"slots_per_trial": 1, "resource_pool": ""}, "max_restarts": 0}
    config |= {"reproducibility": {"experiment_seed": 1}, "hyperparameters": {}, "searcher": SINGLE}
    command = CreateExperiment(user="ann", config=config, original_config="", request_key="k")
    assert searching.fold.rule(command).value == 2
    again = searching.fold.rule(command)
    assert again.value == 2
    assert not again.events
    assert len(searching.state.experiments) == 2


def test_the_reason_of_an_experiment_names_its_commit(searching):
    searching.submit(SINGLE)
    config = {"resources": {"slots_per_trial": 1, "resource_pool": ""}, "max_restarts": 0}
    config |= {"reproducibility": {"experiment_seed": 1}, "hyperparameters": {}, "searcher": SINGLE}
    command = CreateExperiment(user="ann", config=config, original_config="", commit="commit 1924202")
    created, activated = searching.fold.rule(command).events
    assert created.reason == activated.reason == "submitted by ann, commit 1924202"


def test_a_search_that_cannot_start_is_refused_and_leaves_nothing(searching):
    config = {"resources": {"slots_per_trial": 1, "resource_pool": ""}, "max_restarts": 0}
    config |= {"reproducibility": {"experiment_seed": 1}, "hyperparameters": {}}
    config |= {"searcher": {"name": "grid", "max_length": 1, "max_concurrent_trials": 0}}
    with pytest.raises(Refused, match="no points"):
        searching.fold.rule(CreateExperiment(user="ann", config=config, original_config=""))
    assert not searching.state.experiments


def test_pausing_asks_running_trials_to_leave_and_activating_runs_them_again(searching):
    searching.submit(RANDOM)
    stops = of(searcher.StopRequested, change(searching, "pause"))
    assert [(s.trial_id, s.kill) for s in stops] == [(1, False), (2, False), (3, False)]
    assert "bob" in stops[0].reason
    searching.acknowledge(1)
    assert not of(searcher.RunRequested, searching.end_run(1))
    requested = of(searcher.RunRequested, change(searching, "activate"))
    assert [(r.trial_id, r.run) for r in requested] == [(1, 2)]
    # The second run of the first trial was asked for nothing yet; the others still have to leave.
    stops = of(searcher.StopRequested, change(searching, "pause"))
    assert [(s.trial_id, s.allocation_id) for s in stops] == [(1, requested[0].allocation_id)]


def test_a_run_resumes_from_the_latest_checkpoint(searching):
    searching.submit(SINGLE)
    searching.store_checkpoint(1, "first", 4)
    searching.store_checkpoint(1, "second", 7)
    change(searching, "pause")
    searching.acknowledge(1)
    searching.end_run(1)
    (request,) = of(searcher.RunRequested, change(searching, "activate"))
    assert (request.checkpoint, request.steps_completed) == ("second", 7)


def test_an_experiment_completes_when_all_its_trials_have(searching):
    searching.submit(RANDOM)
    for id in (1, 2):
        searching.finish(id)
        assert state_of(searching) == "ACTIVE"
    decided = searching.finish(3)
    assert state_of(searching) == "COMPLETED"
    (ended,) = of(searcher.ExperimentEnded, decided)
    assert ended.state == "COMPLETED"


def test_canceling_ends_in_canceled_once_the_trials_have_left(searching):
    searching.submit(RANDOM)
    stops = of(searcher.StopRequested, change(searching, "cancel"))
    assert [s.kill for s in stops] == [False] * 3
    assert state_of(searching) == "STOPPING_CANCELED"
    for id in (1, 2, 3):
        searching.acknowledge(id)
        searching.end_run(id)
    assert state_of(searching) == "CANCELED"
    assert {t.state for t in searching.state.trials.values()} == {"CANCELED"}


def test_killing_escalates_a_cancel(searching):
    searching.submit(SINGLE)
    change(searching, "cancel")
    stops = of(searcher.StopRequested, change(searching, "kill"))
    assert [s.kill for s in stops] == [True]
    searching.end_run(1, "killed", None, "killed by bob")
    assert state_of(searching) == "CANCELED"


def test_killing_a_paused_experiment_ends_it_at_once(searching):
    searching.submit(RANDOM, activate=False)
    change(searching, "kill")
    assert state_of(searching) == "CANCELED"


@pytest.mark.parametrize("action", ["activate", "pause"])
def test_a_finished_experiment_is_not_started_again(searching, action):
    searching.submit(SINGLE)
    searching.finish(1)
    with pytest.raises(Refused, match="experiment in terminal state") as refused:
        change(searching, action)
    message = str(refused.value)
    assert "experiment 1 is COMPLETED" in message
    assert "Create a new experiment" in message


@pytest.mark.parametrize("action", ["cancel", "kill"])
def test_ending_a_finished_experiment_changes_nothing(searching, action):
    searching.submit(SINGLE)
    searching.finish(1)
    assert not change(searching, action)


@pytest.mark.parametrize("action", ["activate", "pause"])
def test_a_stopping_experiment_refuses_to_go_back(searching, action):
    searching.submit(SINGLE)
    change(searching, "cancel")
    with pytest.raises(Refused, match="incompatible state STOPPING_CANCELED"):
        change(searching, action)


def test_unknown_experiments_and_trials_are_named(searching):
    with pytest.raises(Refused, match="experiment '9' not found"):
        change(searching, "pause", 9)
    with pytest.raises(Refused, match="trial '9' not found"):
        searching.fold.rule(KillTrial(trial_id=9, user="bob"))


def test_killing_one_trial_leaves_the_others(searching):
    searching.submit(RANDOM)
    searching.fold.rule(KillTrial(trial_id=2, user="bob"))
    (stop,) = of(searcher.StopRequested, searching.decide())
    assert (stop.trial_id, stop.kill, stop.reason) == (2, True, "killed by bob")
    searching.end_run(2, "killed", None, "killed by bob")
    assert searching.state.trials[2].state == "CANCELED"
    searching.finish(1)
    searching.finish(3)
    assert state_of(searching) == "COMPLETED"


def test_a_metric_that_cannot_be_ranked_ends_an_asha_search_with_the_reason(searching):
    searching.submit({"name": "adaptive_asha", "max_length": 16, "max_trials": 4})
    decided = searching.complete(1, metric="quite good")
    (stopping,) = of(searcher.ExperimentStopping, decided)
    assert stopping.to == "STOPPING_ERROR"
    assert "must be a number, not 'quite good'" in stopping.reason


def test_nan_counts_as_the_worst_and_the_search_goes_on(searching):
    searching.submit({"name": "adaptive_asha", "max_length": 16, "max_trials": 4})
    for id in (1, 2, 3, 4):
        if id in searching.state.trials and searching.state.trials[id].state == "ACTIVE":
            searching.finish(id, "NaN" if id == 1 else float(id))
    assert state_of(searching) in ("ACTIVE", "COMPLETED")
    assert searching.state.trials[1].seq == 1


def test_progress_is_passed_to_the_search(searching):
    from det_contracts.queries import SearchProgress
    from services.searcher.queries import search_progress

    searching.submit(SINGLE)
    assert search_progress(searching.state, SearchProgress([1, 8])) == {"1": 0.0}
    searching.decisions_after(trial.Progressed(1, 1, 5.0))
    assert search_progress(searching.state, SearchProgress([1])) == {"1": 0.5}
    searching.finish(1)
    assert search_progress(searching.state, SearchProgress([1])) == {"1": 1.0}


@pytest.mark.parametrize(
    ("search", "share"),
    [
        (SINGLE, 0.3),
        ({"name": "random", "max_length": 10, "max_trials": 2, "max_concurrent_trials": 1}, 0.15),
        ({"name": "adaptive_asha", "max_length": 16, "max_trials": 4}, 0.0),
    ],
)
def test_batches_are_progress_for_a_script_that_reports_none(searching, search, share):
    from det_contracts.queries import SearchProgress
    from services.searcher.queries import search_progress

    searching.submit(search)
    assert search_progress(searching.state, SearchProgress([1], {1: 3, 99: 5})) == {"1": share}
    # A later question without them finds nothing left behind.
    assert search_progress(searching.state, SearchProgress([1])) == {"1": 0.0}
    # What the script reports counts, even if it is less.
    searching.decisions_after(trial.Progressed(1, 1, 1.0))
    reported = search_progress(searching.state, SearchProgress([1]))
    assert search_progress(searching.state, SearchProgress([1], {1: 3})) == reported
    searching.finish(1)
    ended = search_progress(searching.state, SearchProgress([1]))
    assert search_progress(searching.state, SearchProgress([1], {1: 3})) == ended
