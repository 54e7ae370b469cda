"""Whole searches played through (searchers spec, section 10)."""

import hashlib
import importlib

import msgspec
import pytest

from services.searcher.methods import (
    MethodError,
    Shutdown,
    ValidateAfter,
    breakdown,
    simulate,
    start,
)

SPACE = {"lr": {"type": "log", "base": 10, "minval": -4, "maxval": -1}, "n": 3}
GRID = {
    "a": {"type": "int", "minval": 0, "maxval": 9, "count": 2},
    "b": {"type": "categorical", "vals": ["only"]},
    "c": {"type": "double", "minval": 0, "maxval": 1, "count": 3},
}
SEARCHES = {
    "random": ("random", {"max_trials": 40, "max_concurrent_trials": 7}),
    "grid": ("grid", {}),
    "promoting": ("async_halving", {"max_trials": 50}),
    "stopping": ("async_halving", {"max_trials": 50, "stop_once": True}),
    "brackets": ("adaptive_asha", {"max_trials": 128, "max_length": {"batches": 6400}, "divisor": 4}),
}


@pytest.mark.parametrize(
    ("name", "fields", "counts"),
    [
        ("single", {"max_length": 16}, {(16,): 1}),
        ("random", {"max_length": {"batches": 19200}}, {(19200,): 4}),
        ("random", {"max_length": {"records": 300}, "max_concurrent_trials": 1}, {(300,): 4}),
        ("grid", {"max_length": 300}, {(300,): 6}),
        (
            "async_halving",
            {"max_length": 576_000},
            {(64_000,): 8, (64_000, 192_000): 3, (64_000, 192_000, 576_000): 1},
        ),
    ],
)
def test_what_each_method_asks_for(config, name, fields, counts):
    space = GRID if name == "grid" else SPACE
    played = simulate(config(name, **fields), space, 1, metric=lambda *_: 1.0)
    assert breakdown(played) == counts
    assert list(breakdown(played).values()) == sorted(counts.values(), reverse=True)


def test_stopping_form_with_metrics_that_get_worse(config):
    search_config = config("async_halving", max_length=9, stop_once=True, max_concurrent_trials=1)
    played = simulate(search_config, {}, 1, metric=lambda number, length, rng: float(number))
    assert list(played.trials.values()) == [(1, 3, 9), *[(1,)] * 11]


def test_the_most_trials_to_play(config):
    with pytest.raises(MethodError, match="more than 20 trials"):
        simulate(config("random", max_trials=21), {}, 1, max_trials=20)
    assert len(simulate(config("random", max_trials=20), {}, 1, max_trials=20).trials) == 20


def test_odd_endings_are_noticed(config, monkeypatch):
    module = importlib.import_module("services.searcher.methods.simulate")
    search, operations = start(config("single"), {}, 1)
    for odd, message in [
        ((), "asks for nothing more"),
        (("dance",), "'dance' is not a search operation"),
        ((*operations, Shutdown(False, False)), "1 trials had operations left"),
    ]:
        monkeypatch.setattr(module, "start", lambda *_, odd=odd: (search, odd))
        with pytest.raises(MethodError, match=message):
            simulate(config("single"), {}, 1)
    assert isinstance(operations[1], ValidateAfter)


DECIDED = {
    "random": "c52498d3a8c7b397",
    "grid": "2910440284130ffc",
    "promoting": "eec8845a0151fef6",
    "stopping": "c76fab3ce6b62c67",
    "brackets": "fc965bb7f1da72cf",
}


@pytest.mark.parametrize("name", DECIDED)
def test_searches_decide_as_they_always_did(config, name):
    """Logs of searches that ran hold these decisions: a method that decides otherwise can not fold them."""
    method, fields = SEARCHES[name]
    played = simulate(config(method, **fields), GRID if method == "grid" else SPACE, 20)
    digest = hashlib.sha256(msgspec.json.encode([played.trials, played.search.rng.position]))
    assert digest.hexdigest()[:16] == DECIDED[name]
