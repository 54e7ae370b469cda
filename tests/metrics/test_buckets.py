"""Curves in buckets: true whatever they are made from, over any x."""

import math

import numpy as np
import pytest

from det_contracts.problems import Refused
from det_contracts.queries import Buckets
from tests.fixtures.databases import POSTGRESQL_IN_FULL
from tests.metrics.world import reports, series, training, validation

N = 20_000


def wanted(names=("loss",), **more):
    return Buckets(trial_ids=[1], names=list(names), **more)


@pytest.fixture
def long(saved, points):
    """Many sealed chunks, a few that are not, one spike, a few gaps."""
    values = ["NaN" if math.isnan(value) else value for value in points.tolist()]
    for start in range(0, N, 3000):
        steps = range(start, min(start + 3000, N))
        columns = {"loss": [values[n] for n in steps], "epoch": [n // 1000 for n in steps]}
        ask = saved(reports(series("training", steps, columns), number=start + 1))
    return ask


@pytest.fixture(scope="module")
def points():
    """The finite values of `long` as they were, NaN for the others."""
    values = np.sin(np.arange(N) / 700.0)
    values[12_345] = 99.0
    values[7] = values[15_000] = math.nan
    return values


@POSTGRESQL_IN_FULL
@pytest.mark.parametrize("width", [10, 100, 300, 900])
@pytest.mark.parametrize(("first", "last"), [(None, None), (5000, 17_000), (12_000.5, 13_000.5)])
def test_each_bucket_is_true_of_its_points(long, points, width, first, last):
    (curve,) = long(wanted(width=width, first=first, last=last))
    low, high = math.ceil(first or 0), math.floor(N - 1 if last is None else last)
    assert curve["count"] == high - low + 1 == sum(curve["counts"])
    assert curve["non_finite"] == np.isnan(points[low : high + 1]).sum() == sum(curve["gaps"])
    assert len(curve["x"]) <= width
    assert curve["x"] == curve["batches"]
    begin = low
    for place, end in enumerate(curve["batches"]):
        some = points[begin : end + 1]
        assert curve["counts"][place] == len(some)
        assert curve["gaps"][place] == np.isnan(some).sum()
        assert curve["min"][place] == np.nanmin(some)
        assert curve["max"][place] == np.nanmax(some)
        assert curve["mean"][place] == pytest.approx(np.nanmean(some))
        assert curve["last"][place] == some[np.isfinite(some)][-1]
        begin = end + 1
    assert begin == high + 1


def test_a_spike_is_seen_from_afar_and_raw_from_near(long):
    (far,) = long(wanted(width=50))
    assert max(far["max"]) == 99.0
    (near,) = long(wanted(first=12_300, last=12_400))
    assert near["raw"]
    assert near["last"][near["batches"].index(12_345)] == 99.0
    assert "max" not in near


def test_time_and_epoch_as_x(long):
    (by_time,) = long(wanted(x="time", width=100))
    assert by_time["x"] == [100.0 + steps for steps in by_time["batches"]]
    (near,) = long(wanted(x="time", first=100.0 + 12_300, last=100.0 + 12_400))
    assert near["batches"] == list(range(12_300, 12_401))
    (by_epoch,) = long(wanted(x="epoch", width=100))
    assert by_epoch["x"] == [steps // 1000 for steps in by_epoch["batches"]]
    assert by_epoch["count"] == N
    (epoch_curve,) = long(wanted(x="epoch", first=12, last=12, width=50))
    assert (epoch_curve["count"], epoch_curve["max"]) == (1000, [99.0])


def test_epochs_of_training_hold_for_validations_after_them(saved):
    ask = saved(
        reports(training([10, 20], epoch=[1, 2]), validation([5, 10, 15, 25], loss=[9.0, 8.0, 7.0, 6.0]))
    )
    (curve,) = ask(wanted(x="epoch"))
    assert (curve["x"], curve["last"]) == ([1, 1, 2], [8.0, 7.0, 6.0])


def test_any_metric_as_x_may_go_back_and_forth(saved):
    angles = np.linspace(0, 7, 5000)
    ask = saved(reports(training(range(5000), x=np.cos(angles).tolist(), y=np.sin(angles).tolist())))
    (curve,) = ask(wanted(["y"], x="metric:x", width=100))
    assert not curve["monotone"]
    assert len(curve["x"]) == 100
    (part,) = ask(wanted(["y"], x="metric:x", first=0.5, last=1.0, width=10_000))
    assert part["count"] == (np.cos(angles) >= 0.5).sum()
    assert ask(wanted(["y"], x="metric:none")) == []
    with pytest.raises(Refused, match="x must be"):
        ask(wanted(x="steps"))


def test_reports_of_several_kinds_make_one_curve(saved):
    ask = saved(
        reports(
            training([1, 3], loss=[1.0, 3.0]),
            training([2, 4], loss=[2.0, 4.0], lr=[0.1, 0.1]),
            training([5], lr=[0.1]),
        )
    )
    (curve,) = ask(wanted())
    assert (curve["batches"], curve["last"]) == ([1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0])
    saved(reports(training([5], loss=[5.0]), number=2))
    assert ask(wanted())[0]["batches"] == [1, 2, 3, 4, 5]


def test_text_and_maps_are_no_points(saved):
    ask = saved(
        reports(training(range(5), odd=["a", 1, {"b": 2}, "Infinity", True])),
        reports(training(range(6000), odd=[1.0, "text"] * 3000), trial=2),
        reports(training([1], text=["only"]), trial=3),
    )
    (curve,) = ask(wanted(["odd"]))
    assert (curve["batches"], curve["last"], curve["non_finite"]) == ([1, 3], [1.0, None], 1)
    (long_,) = ask(Buckets(trial_ids=[2], names=["odd"], width=10))
    assert (long_["count"], sum(long_["counts"]), long_["non_finite"]) == (3000, 3000, 0)
    assert ask(Buckets(trial_ids=[3], names=["text"])) == []


def test_huge_values_do_not_break_a_bucket(saved):
    values = [1e308, -1e308] * 2000
    ask = saved(reports(training(range(4000), loss=values), number=1))
    saved(reports(training(range(4000, 8000), loss=[1e308] * 4000), number=2))
    (curve,) = ask(wanted(width=4))
    assert (min(curve["min"]), max(curve["max"])) == (-1e308, 1e308)
    assert curve["mean"][-1] is None


def test_nobody_and_nothing(saved):
    ask = saved(reports(training([1], loss=[1.0])))
    assert ask(wanted(first=5, last=9)) == []
    assert ask(Buckets(trial_ids=[9], names=["loss"])) == []
    assert ask(wanted(["none"])) == []
