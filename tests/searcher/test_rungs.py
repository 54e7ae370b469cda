"""A halving search as people look at it."""

import pytest

from det_contracts.problems import Refused
from det_contracts.queries import SearchRungs
from services.searcher.queries import ANSWERS

HALVING = {
    "name": "adaptive_asha",
    "mode": "aggressive",
    "max_length": 16,
    "max_rungs": 2,
    "max_trials": 4,
    "divisor": 4,
}
HALVING |= {"max_concurrent_trials": 4}


def rungs(searching):
    (bracket,) = ANSWERS[SearchRungs](searching.state, SearchRungs(1))["brackets"]
    return bracket


def play(searching, metrics):
    for id, metric in metrics.items():
        searching.complete(id, metric)


def test_who_was_promoted_and_who_stopped_and_at_which_value(searching):
    searching.submit(HALVING)
    play(searching, {1: 0.4, 2: 0.1, 3: 0.3})
    low, top = rungs(searching)
    assert (low["length"], top["length"]) == (4, 16)
    assert low["waiting"] == 1
    assert low["entries"] == [[2, 0.1, "waits"], [3, 0.3, "waits"], [1, 0.4, "waits"]]
    play(searching, {4: 0.2})
    searching.finish(2, 0.05)
    low, top = rungs(searching)
    assert [entry[2] for entry in low["entries"]] == ["promoted", "stopped", "stopped", "stopped"]
    assert top["entries"] == [[2, 0.05, "top"]]
    assert low["count"] == 4


def test_values_are_as_reported_where_larger_is_better(searching):
    searching.submit(HALVING | {"smaller_is_better": False})
    play(searching, {1: 0.4, 2: 0.9, 3: "NaN"})
    assert rungs(searching)[0]["entries"] == [[2, 0.9, "waits"], [1, 0.4, "waits"], [3, None, "waits"]]


def test_a_failed_trial_is_distinguished(searching):
    searching.submit(HALVING, max_restarts=0)
    searching.end_run(1, "failed", 1, "exit code 1")
    assert [1, None, "left"] in rungs(searching)[0]["entries"]


def test_other_searches_have_none(searching):
    searching.submit({"name": "random", "max_length": 1, "max_trials": 1})
    assert ANSWERS[SearchRungs](searching.state, SearchRungs(1)) == {"brackets": []}
    with pytest.raises(Refused, match="9"):
        ANSWERS[SearchRungs](searching.state, SearchRungs(9))
