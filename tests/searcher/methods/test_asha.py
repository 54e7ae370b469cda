"""Halving brackets whose trials give up, are stopped or are invalid (searchers spec, 5.4 to 5.6)."""

import pytest

from services.searcher.methods import MethodError, Shutdown


def test_a_trial_stopped_while_it_waits_keeps_its_result(driven):
    search = driven("async_halving", num_rungs=2, max_trials=3, max_length=9)
    search.create(0, 1, 2)
    search.report(0, 0.1)
    assert search.give_up(0, "USER_CANCELED") == []
    search.report(1, 0.2)
    # The third result lets the best one climb: it is gone, so it is the worst of the top rung at once.
    assert search.report(2, 0.3) == [("close", 1), ("close", 2)]
    search.close(1)
    search.close(2)
    assert search.shutdown == Shutdown(cancel=False, failure=False)


def test_a_trial_that_fails_has_the_worst_result(driven):
    search = driven("async_halving", num_rungs=2, max_trials=3, max_length=9)
    search.create(0, 1, 2)
    assert search.exit(0, "ERRORED") == []
    search.report(1, 0.2)
    assert search.report(2, 1e300) == [("train", 1, 9), ("close", 2)]


@pytest.mark.parametrize("stop_once", [True, False])
def test_a_trial_with_an_invalid_point_is_replaced(driven, stop_once):
    search = driven("async_halving", num_rungs=2, max_trials=3, max_length=9, stop_once=stop_once)
    search.create(0, 1, 2)
    assert search.exit(0, "INVALID_HP") == [("close", 0), ("create", 3), ("train", 3, 3)]
    assert [len(rung.entries) for rung in search.search.method.rungs] == [0, 0]


def test_an_invalid_climber_leaves_no_result_behind(driven):
    search = driven("async_halving", num_rungs=2, max_trials=3, max_length=9)
    search.create(0, 1, 2)
    for trial in (0, 1, 2):
        search.report(trial, trial / 10)
    assert search.operations[-3:] == [("train", 0, 9), ("close", 1), ("close", 2)]
    assert search.exit(0, "INVALID_HP") == [("close", 0), ("create", 3), ("train", 3, 3)]
    assert [e.request_id for e in search.search.method.rungs[0].entries] == search.ids[1:3]


def test_a_closed_trial_does_not_climb_when_a_replacement_reports(driven):
    search = driven("async_halving", num_rungs=3, max_trials=9, max_length=9)
    search.create(*range(9))
    for trial in range(9):
        search.report(trial, float(trial))
    assert ("close", 3) in search.operations
    search.give_up(0, "INVALID_HP")
    search.create(9)
    # Trial 3 is the third best now, but it was closed when trial 8 had reported.
    assert search.report(9, 100.0) == [("close", 9)]
    search.report(1, 1.0)
    search.report(2, 2.0)
    for trial in range(1, 10):
        search.close(trial)
    assert search.shutdown == Shutdown(cancel=False, failure=False)


def test_nobody_reports_unasked(driven):
    search = driven("async_halving", num_rungs=2, max_trials=3, max_length=9)
    search.create(0, 1, 2)
    search.report(0, 0.1)
    with pytest.raises(MethodError, match="was not requested"):
        search.report(0, 0.1)


def test_ties_go_after_in_the_promoting_form_and_before_in_the_stopping_form(driven):
    promoting = driven("async_halving", num_rungs=2, max_trials=3, max_length=9)
    promoting.create(0, 1, 2)
    for trial in (0, 1, 2):
        promoting.report(trial, 0.5)
    assert ("train", 0, 9) in promoting.operations
    stopping = driven("async_halving", num_rungs=2, max_trials=3, max_length=9, stop_once=True)
    stopping.create(0, 1, 2)
    for trial in (0, 1, 2):
        assert ("train", trial, 9) in stopping.report(trial, 0.5)


def test_equal_rungs_ask_for_the_same_length_again(driven):
    search = driven("async_halving", num_rungs=3, max_trials=3, max_length=2, max_concurrent_trials=3)
    search.create(0, 1, 2)
    search.report(0, 0.3)
    search.report(1, 0.2)
    assert search.report(2, 0.1)[0] == ("train", 2, 1)
    assert [rung.length for rung in search.search.method.rungs] == [1, 1, 2]


def test_larger_is_better(driven):
    search = driven("async_halving", num_rungs=2, max_trials=3, max_length=9, smaller_is_better=False)
    search.create(0, 1, 2)
    for trial in (0, 1, 2):
        search.report(trial, trial)
    assert ("train", 2, 9) in search.operations
