"""Statistics of one metric."""

import sys

import pytest

from services.metrics.reports.summary import Summary, add
from services.metrics.values import as_finite, as_number


def summed(*values):
    summary = Summary()
    for steps, value in enumerate(values):
        summary = add(summary, steps, value)
    return summary.to_public()


def test_numbers():
    assert summed(3, 1.0, 2) == {
        "count": 3, "sum": 6.0, "min": 1.0, "max": 3.0, "last": 2, "mean": 2.0, "type": "number",
    }  # fmt: skip


def test_what_is_not_finite_counts_and_can_be_last_but_spoils_nothing():
    trial_summary = summed(1.0, "NaN", 3.0, "-Infinity")
    assert (trial_summary["count"], trial_summary["sum"], trial_summary["min"], trial_summary["max"]) == (
        4,
        4.0,
        1.0,
        3.0,
    )
    assert (trial_summary["mean"], trial_summary["last"], trial_summary["type"]) == (
        2.0,
        "-Infinity",
        "number",
    )


def test_only_nan():
    trial_summary = summed("NaN")
    assert (trial_summary["count"], trial_summary["min"], trial_summary["mean"], trial_summary["last"]) == (
        1,
        None,
        None,
        "NaN",
    )


@pytest.mark.parametrize("value", ["text", True, None, {"a": 1}, [1, 2]])
def test_anything_else_is_other(value):
    assert summed(1.0, value) == {"count": 2, "last": value, "type": "other"}
    assert summed(value, 2.0) == {"count": 2, "last": 2.0, "type": "other"}


def test_last_is_that_of_the_most_steps():
    summary = add(add(add(Summary(), 10, "a"), 5, "b"), 10, "c")
    assert summary.to_public()["last"] == "c"


def test_sums_stay_finite():
    assert summed(1.7e308, 1.7e308)["sum"] == sys.float_info.max


def test_whole_numbers_too_large_for_a_float_are_no_numbers():
    assert as_number(10**400) is None
    assert as_finite(10**400) is None
    assert summed(10**400)["type"] == "other"
