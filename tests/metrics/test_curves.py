"""Reports as curves, and what logs differ in."""

import msgspec
import numpy as np
import pytest

from det_contracts.queries import (
    LogFields,
    MetricNames,
    ReportedSteps,
    Series,
    TrialStatistics,
    ValidationHistory,
)
from services.metrics.reports import curves
from services.metrics.series.column import column
from services.metrics.series.thinning import thin
from tests.metrics.world import lines, reports, series, training, validation


def test_names_are_grouped_across_experiments(saved):
    ask = saved(
        reports(training([1], loss=[1], lr=[2]), validation([1], loss=[1])),
        reports(series("mine", [1], {"x": [1]}), trial=2, experiment=2),
        reports(series("mine", [1], {"y": [1]}), trial=3, experiment=3),
    )
    assert ask(MetricNames([1, 2])) == {"mine": ["x"], "training": ["loss", "lr"], "validation": ["loss"]}
    assert ask(MetricNames([9])) == {}


def test_statistics_of_one_metric_cover_the_trials_that_have_it(saved):
    ask = saved(
        reports(training([1, 2], loss=[3, 1])),
        reports(training([1], other=[1]), trial=2),
        reports(training([1], loss=[7]), trial=3),
    )
    by_trial = dict(ask(TrialStatistics(trial_ids=[1, 2, 9], group="training", name="loss")))
    assert list(by_trial) == [1]
    assert (by_trial[1]["min"], by_trial[1]["last"], by_trial[1]["mean"]) == (1, 1, 2)


def test_steps_of_a_metric_come_once_each_and_in_pages(saved, monkeypatch):
    ask = saved(
        reports(training([10, 20, 30, 40], loss=[1, 2, "text", "NaN"])),
        reports(training([20, 50], loss=[1, 2]), training([60], other=[1]), trial=2),
        reports(training([70], loss=[1]), trial=3, experiment=2),
    )
    query = ReportedSteps(experiment_id=1, group="training", metric="loss")
    assert ask(query) == {"steps": [10, 20, 40, 50], "more": False}
    monkeypatch.setattr(curves, "STEPS_PER_PAGE", 2)
    assert ask(query) == {"steps": [10, 20], "more": True}
    assert ask(msgspec.structs.replace(query, after=20)) == {"steps": [40, 50], "more": False}


def test_curves_hold_numbers_in_a_window_without_what_was_archived(saved):
    ask = saved(
        reports(training([10, 20, 30], loss=[3, "NaN", 1], epoch=[0, 0.5, 1]), validation([20], loss=[9])),
        reports(training([30], loss=[7]), training([40], text=["x"]), run=2),
    )
    (train, val) = ask(Series(trial_ids=[1], names=["loss", "text"]))
    assert (train["trial_id"], train["group"], val["group"]) == (1, "training", "validation")
    assert train["points"] == [
        [10, 110.0, 0.0, {"loss": 3}],
        [20, 120.0, 0.5, {"loss": "NaN"}],
        [30, 130.0, None, {"loss": 7}],
    ]
    (curve,) = ask(Series(trial_ids=[1, 9], names=["loss"], group="training", first=15, last=25))
    assert [point[0] for point in curve["points"]] == [20]
    assert ask(Series(trial_ids=[1], names=["none"])) == []


def test_a_long_curve_is_thinned_and_keeps_its_spike(saved):
    values = [0.5] * 5000
    values[3333] = 99.0
    ask = saved(reports(training(range(5000), loss=values)))
    (curve,) = ask(Series(trial_ids=[1], names=["loss"], limit=100))
    steps = [point[0] for point in curve["points"]]
    assert len(steps) <= 100
    assert {0, 3333, 4999} <= set(steps)
    assert steps == sorted(steps)


def _thinned(values, limit, names=("a",)):
    value_column = column(values)
    places = thin(
        np.arange(len(values)), [(value_column.numbers, value_column.is_number()) for _ in names], limit
    )
    return [(int(place), values[place]) for place in places]


def test_short_series_stay_whole():
    assert _thinned([3, 1, 2], 3) == [(0, 3), (1, 1), (2, 2)]


@pytest.mark.parametrize("limit", [10, 50, 999])
def test_thinning_keeps_extremes_ends_and_the_limit(limit):
    values = [float((step * 7919) % 1009) for step in range(1009)]
    thinned = _thinned(values, limit, ("a", "b"))
    assert len(thinned) <= limit
    assert thinned[0] == (0, values[0])
    assert thinned[-1] == (1008, values[-1])
    assert {value for _, value in thinned} >= {min(values), max(values)}


def test_thinning_keeps_values_that_are_not_finite():
    values = [1.0] * 500 + ["NaN"] + [2.0] * 499
    thinned = dict(_thinned(values, 20))
    assert thinned[500] == "NaN"
    assert len(thinned) <= 20


def test_history_is_the_running_best(saved):
    ask = saved(
        reports(validation([1, 4], loss=[0.5, 0.2])),
        reports(validation([2, 3], loss=[0.6, 0.4]), trial=2),
        reports(validation([3], loss=[0.1]), trial=3, experiment=2),
    )
    assert ask(ValidationHistory(1, True)) == [
        {"trial_id": 1, "at": 101.0, "metric": 0.5},
        {"trial_id": 2, "at": 103.0, "metric": 0.4},
        {"trial_id": 1, "at": 104.0, "metric": 0.2},
    ]
    assert [row["metric"] for row in ask(ValidationHistory(1, False))] == [0.5, 0.6]


def test_fields_of_a_log_are_listed_once(saved):
    ask = saved(
        lines("a", "b"),
        lines("c", offset=9, rank=1, stdtype="stderr"),
        lines("d", source="agent", worker="w2", run=2),
        lines("other", task="2.b", source="master"),
    )
    fields = ask(LogFields("1.a"))
    assert {name: fields[name] for name in ("places", "ranks", "stdtypes", "sources")} == {
        "places": [["1.a.1", "w1"], ["1.a.2", "w2"]],
        "ranks": [None, 1],
        "stdtypes": ["stderr", "stdout"],
        "sources": ["agent", "task"],
    }


def test_one_point_of_each_curve_can_be_asked_for(saved):
    ask = saved(reports(training([10, 20, 30], loss=[3, 2, 1])), reports(training([24], loss=[5]), trial=2))
    nearest_curves = ask(Series(trial_ids=[1, 2, 3], names=["loss"], first=15, last=35, nearest=26))
    assert [(row["trial_id"], row["points"][0][0]) for row in nearest_curves] == [(1, 30), (2, 24)]
    assert [len(row["points"]) for row in nearest_curves] == [1, 1]
