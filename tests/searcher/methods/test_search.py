"""The wrapper around every method: when a search ends, and what it refuses (searchers spec, 1.3 and 7)."""

import math

import pytest

from services.searcher.methods import (
    MethodError,
    Shutdown,
    TrialClosed,
    TrialProgress,
    ValidationCompleted,
    progress,
    start,
    step,
)
from services.searcher.methods.protocol import WORST_METRIC
from services.searcher.methods.search import rankable


def test_a_search_ends_when_all_its_trials_are_closed(driven):
    search = driven("random", max_trials=2)
    search.create(0, 1)
    search.report(0, 0.5)
    search.close(0)
    assert search.shutdown is None
    search.report(1, 0.5)
    search.close(1)
    assert search.shutdown == Shutdown(cancel=False, failure=False)


@pytest.mark.parametrize(
    ("reasons", "shutdown"),
    [
        (["ERRORED", "ERRORED"], Shutdown(cancel=False, failure=True)),
        (["USER_CANCELED", "USER_CANCELED"], Shutdown(cancel=True, failure=False)),
        (["ERRORED", "USER_CANCELED"], Shutdown(cancel=False, failure=False)),
        (["ERRORED", "USER_REQUESTED_STOP"], Shutdown(cancel=False, failure=False)),
    ],
)
def test_failed_and_canceled_only_when_every_trial_was(driven, reasons, shutdown):
    search = driven("random", max_trials=2)
    search.create(0, 1)
    for trial, reason in enumerate(reasons):
        search.give_up(trial, reason)
    assert search.shutdown == shutdown


def test_one_success_completes_a_search(driven):
    search = driven("random", max_trials=2)
    search.create(0, 1)
    search.give_up(0, "ERRORED")
    search.report(1, 1.0)
    search.close(1)
    assert search.shutdown == Shutdown(cancel=False, failure=False)


def test_an_invalid_point_is_replaced_by_random_and_not_by_single(driven):
    many = driven("random", max_trials=2)
    many.create(0, 1)
    assert many.give_up(0, "INVALID_HP") == [("create", 2), ("train", 2, 900), ("close", 2)]
    assert many.give_up(1, "ERRORED") == []
    single = driven("single")
    single.create(0)
    assert single.give_up(0, "INIT_INVALID_HP") == []
    assert single.shutdown == Shutdown(cancel=False, failure=False)


def test_an_invalid_point_of_a_grid_is_not_tried_again(driven):
    search = driven("grid", {"a": {"type": "categorical", "vals": [1, 2]}})
    search.create(0, 1)
    assert search.give_up(0, "INVALID_HP") == []
    search.close(1)
    assert search.shutdown is not None


def test_repeated_results_have_no_effect(driven):
    search = driven("random", max_trials=3, max_concurrent_trials=1)
    search.create(0)
    search.exit(0, "INVALID_HP")
    before = search.search
    assert search.exit(0, "ERRORED") == []
    search.create(0)
    assert search.search == before
    search.close(0)
    before = search.search
    assert search.close(0) == search.exit(0, "USER_CANCELED") == []
    assert search.search == before


def test_progress_of_trials_counts_until_their_point_is_found_invalid(driven):
    search = driven("random", max_trials=2)
    search.create(0, 1)
    search.tell(TrialProgress(search.ids[0], 450.0))
    assert progress(search.search) == pytest.approx(0.25)
    for odd in (math.nan, math.inf):
        search.tell(TrialProgress(search.ids[0], odd))
    assert progress(search.search) == pytest.approx(0.25)
    search.exit(0, "INVALID_HP")
    search.tell(TrialProgress(search.ids[0], 800.0))
    assert progress(search.search) == 0.0


@pytest.mark.parametrize(("units", "shown"), [(-5000.0, 0.0), (-1e308, 0.0), (1e308, 1.0)])
def test_progress_beyond_either_end_is_shown_as_that_end(driven, units, shown):
    search = driven("random", max_trials=2)
    search.create(0, 1)
    search.tell(TrialProgress(search.ids[0], units))
    assert progress(search.search) == shown


def test_trials_of_others_are_refused(driven):
    for name, event in [
        ("random", TrialClosed("x")),
        ("adaptive_asha", ValidationCompleted("x", 1.0, 1)),
    ]:
        with pytest.raises(MethodError, match="trial x was not announced"):
            step(driven(name).search, event)
    with pytest.raises(MethodError, match="does not accept"):
        step(driven("random").search, "activated")


@pytest.mark.parametrize("name", ["async_halving", "adaptive_asha"])
def test_an_unknown_trial_is_not_passed_to_brackets(driven, name):
    search = driven(name)
    search.ids.append("x")
    with pytest.raises(MethodError, match="trial x does not belong to this search"):
        search.create(-1)


@pytest.mark.parametrize(
    ("metric", "smaller", "larger"),
    [
        (0.5, 0.5, 0.5),
        (3, 3.0, 3.0),
        ("NaN", WORST_METRIC, -WORST_METRIC),
        (math.nan, WORST_METRIC, -WORST_METRIC),
        ("Infinity", WORST_METRIC, WORST_METRIC),
        ("-Infinity", -WORST_METRIC, -WORST_METRIC),
        (10**400, WORST_METRIC, WORST_METRIC),
    ],
)
def test_metrics_are_finite_before_they_are_compared(metric, smaller, larger):
    assert rankable(metric, True) == smaller
    assert rankable(metric, False) == larger


@pytest.mark.parametrize("metric", ["high", None, True, {"loss": 1}, [1.0]])
def test_what_is_no_number_can_not_be_ranked(driven, metric):
    search = driven("adaptive_asha")
    search.create(0)
    with pytest.raises(MethodError, match="must be a number"):
        search.report(0, metric)
    other = driven("random")
    other.create(0)
    assert other.report(0, metric) == []


@pytest.mark.parametrize("smaller_is_better", [True, False])
def test_nan_ranks_last_in_either_direction(driven, smaller_is_better):
    search = driven("async_halving", num_rungs=2, max_trials=3, smaller_is_better=smaller_is_better)
    search.create(0, 1, 2)
    search.report(0, "NaN")
    search.report(1, "Infinity" if smaller_is_better else "-Infinity")
    assert search.report(2, 1e300 if smaller_is_better else -1e300)[0] == ("train", 2, 900)


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("random", {"max_length": {"batches": 0}}, "max_length must be at least 1"),
        ("adaptive_asha", {"max_length": 0}, "max_length must be at least 1"),
        ("random", {"max_trials": 10**9, "max_concurrent_trials": 0}, "set max_concurrent_trials"),
        ("async_halving", {"max_trials": 10**9, "max_concurrent_trials": 10**8}, "set max_concurrent_trials"),
        ("async_halving", {"num_rungs": 10**9}, "too high"),
        ("adaptive_asha", {"max_rungs": 10**9, "divisor": 1.0000001}, "lower max_rungs"),
        ("adaptive_asha", {"bracket_rungs": [90], "divisor": 1e300}, "beyond what a double can hold"),
    ],
)
def test_a_search_that_can_not_be_is_refused_at_its_start(config, name, fields, message):
    with pytest.raises(MethodError, match=message):
        start(config(name, **fields), {}, 1)


def test_unknown_searchers(config):
    with pytest.raises(MethodError, match="unknown searcher 'hunch'"):
        start(config("single") | {"name": "hunch"}, {}, 1)


@pytest.mark.parametrize("unit", ["batches", "records", "epochs"])
def test_lengths_may_carry_a_unit(driven, unit):
    assert driven("single", max_length={unit: 7}).operations == [("create", 0), ("train", 0, 7), ("close", 0)]
