"""Axes and points of a grid (searchers spec, section 4)."""

import pytest

from services.searcher.methods import MethodError
from services.searcher.methods.grid import axis_size, axis_value, point_at, point_count


def axis(**spec):
    return [axis_value(spec, place) for place in range(axis_size(spec))]


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ({"type": "const", "val": {"a": 1}}, [{"a": 1}]),
        ({"type": "categorical", "vals": ["b", None, "a"]}, ["b", None, "a"]),
        ({"type": "int", "minval": 0, "maxval": 5, "count": 1}, [3]),
        ({"type": "int", "minval": -5, "maxval": 0, "count": 1}, [-3]),
        ({"type": "int", "minval": 0, "maxval": 2, "count": 9}, [0, 1, 2]),
        ({"type": "int", "minval": 0, "maxval": 5, "count": 3}, [0, 3, 5]),
        ({"type": "double", "minval": -1, "maxval": 2, "count": 1}, [0.5]),
        ({"type": "double", "minval": 0, "maxval": 1, "count": 3}, [0.0, 0.5, 1.0]),
        ({"type": "log", "base": 10, "minval": -2, "maxval": 0, "count": 3}, [0.01, 0.1, 1.0]),
    ],
)
def test_axes(spec, values):
    actual = axis(**spec)
    assert actual == pytest.approx(values) if spec["type"] == "log" else actual == values
    assert [type(v) for v in actual] == [type(v) for v in values]


def test_plain_values_and_empty_groups_stay(driven):
    space = {"b": 7, "a": {"type": "categorical", "vals": [1, 2]}, "none": {}, "list": [1, 2]}
    assert point_count(space) == 2
    assert point_at(space, 0) == {"a": 1, "b": 7, "list": [1, 2], "none": {}}


def test_a_grid_is_not_laid_out_in_memory(driven):
    wide = {"type": "double", "minval": 0, "maxval": 1, "count": 10_000}
    search = driven("grid", {"a": wide, "b": wide})
    assert search.search.method.points == 10**8
    assert search.operations[:3] == [("create", 0), ("train", 0, 900), ("close", 0)]


@pytest.mark.parametrize("kind", ["int", "double", "log"])
def test_a_range_needs_a_count(driven, kind):
    spec = {"type": kind, "base": 10, "minval": 0, "maxval": 1}
    with pytest.raises(MethodError, match="grid search is in use but count was not provided"):
        driven("grid", {"a": spec | {"count": None}})
    with pytest.raises(MethodError, match="grid search is in use but count was not provided"):
        driven("grid", {"group": {"a": spec}})


def test_grids_that_can_not_be(driven):
    wide = {"type": "double", "minval": 0, "maxval": 1, "count": 10**6}
    with pytest.raises(MethodError, match="no points"):
        driven("grid", {})
    with pytest.raises(MethodError, match="lower some count"):
        driven("grid", {"a": wide, "b": wide})
    with pytest.raises(MethodError, match="set max_concurrent_trials"):
        driven("grid", {"a": wide}, max_concurrent_trials=0)
    with pytest.raises(MethodError, match="unknown hyperparameter type 'odd'"):
        driven("grid", {"a": {"type": "odd"}})
