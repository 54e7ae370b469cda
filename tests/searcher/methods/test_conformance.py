"""What every search method owes, whichever it is (searchers spec, sections 9 and 10)."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.searcher.methods import Create, Search, Shutdown, progress, simulate, start, step

SPACE = {
    "lr": {"type": "log", "base": 10, "minval": -4, "maxval": -1},
    "group": {"cat": {"type": "categorical", "vals": ["a", None, 3]}, "n": {"type": "const", "val": 1}},
    "layers": {"type": "int", "minval": 1, "maxval": 4},
    "plain": [1],
}
GRID = {
    "a": {"type": "int", "minval": 0, "maxval": 9, "count": 4},
    "b": {"type": "categorical", "vals": [1, 2]},
}
RUNGS = {"max_rungs": 3, "divisor": 3, "stop_once": False}
SEARCHES = {
    "single": ("single", {}),
    "random": ("random", {"max_trials": 40, "max_concurrent_trials": 7}),
    "random, unbounded": ("random", {"max_trials": 9, "max_concurrent_trials": 0}),
    "grid": ("grid", {}),
    "promoting": ("async_halving", {"max_trials": 50}),
    "stopping": ("async_halving", {"max_trials": 50, "stop_once": True}),
    "aggressive": ("adaptive_asha", {"max_trials": 60, "mode": "aggressive"}),
    "standard": ("adaptive_asha", {"max_trials": 128, "max_length": {"batches": 6400}, "divisor": 4}),
    "conservative": ("adaptive_asha", {"max_trials": 60, "mode": "conservative"}),
    "conservative, stopping": (
        "adaptive_asha",
        {"max_trials": 60, "mode": "conservative", "stop_once": True},
    ),
    "standard, unbounded": ("adaptive_asha", {"max_trials": 60, "max_concurrent_trials": 0}),
    "two brackets of one rung": ("adaptive_asha", {"max_trials": 8, "bracket_rungs": [1, 1]}),
    "tpe": ("tpe", {"max_trials": 20}),
    "tpe, promoting": ("tpe", {"max_trials": 20, "rungs": RUNGS}),
    "tpe, stopping": ("tpe", {"max_trials": 20, "rungs": RUNGS | {"stop_once": True}}),
    "pbt": ("pbt", {}),
    "pbt, larger is better": ("pbt", {"smaller_is_better": False, "population_size": 9, "num_rounds": 6}),
}


@pytest.fixture(scope="module", params=SEARCHES)
def searched(request, config):
    """The searcher section of a configuration, and hyperparameters that suit it."""
    name, fields = SEARCHES[request.param]
    return config(name, **fields), GRID if name == "grid" else SPACE


def test_progress_grows_from_0_to_1(searched):
    steps = []
    simulate(*searched, 5, on_step=lambda search: steps.append(progress(search)))
    assert steps[0] == 0
    assert steps == sorted(steps)
    assert steps[-1] == 1


def test_a_snapshot_is_the_state_to_the_byte(searched):
    def check(search):
        encoded = msgspec.json.encode(search)
        restored = msgspec.json.decode(encoded, type=Search)
        assert restored == search
        assert msgspec.json.encode(restored) == encoded

    simulate(*searched, 5, on_step=check)


def test_every_trial_made_is_played_and_closed(searched):
    played = simulate(*searched, 5)
    assert played.shutdown == Shutdown(cancel=False, failure=False)
    assert len(played.trials) == played.search.requested == len(played.search.closed)
    assert set(played.trials) == set(played.search.closed)
    assert not len(played.search.units)


def test_equal_seeds_play_equally(searched):
    assert simulate(*searched, 9) == simulate(*searched, 9)
    assert list(simulate(*searched, 9).trials) != list(simulate(*searched, 10).trials)


def test_no_trial_trains_beyond_max_length_or_back(searched):
    longest = searched[0]["max_length"]
    longest = longest["batches"] if isinstance(longest, dict) else longest
    for lengths in simulate(*searched, 5).trials.values():
        assert list(lengths) == sorted(lengths)
        assert 1 <= min(lengths) <= max(lengths) <= longest


def test_trials_have_all_hyperparameters(searched):
    config, space = searched
    _, operations = start(config, space, 5)
    made = [o.hparams for o in operations if isinstance(o, Create)]
    assert made
    assert all(hparams.keys() == space.keys() for hparams in made)


CHANCE = {"seed": st.integers(0, 2**32 - 1), "exits": st.integers(0, 12)}


@settings(max_examples=2)
@given(**CHANCE)
def test_early_exits_hold_no_search_up(searched, histories, seed, exits):
    check_early_exits(*searched, histories, seed, exits)


@pytest.mark.full
@settings(max_examples=20)
@given(**CHANCE)
def test_early_exits_hold_no_search_up_again_and_again(searched, histories, seed, exits):
    check_early_exits(*searched, histories, seed, exits)


def check_early_exits(config, space, histories, seed, exits):
    history, steps = histories(config, space, seed, exits), [0.0]
    while history.shutdown is None:
        before = msgspec.json.encode(history.search)
        _, event, operations = history.go()
        restored = msgspec.json.decode(before, type=Search)
        assert step(restored, event) == (history.search, operations)
        assert msgspec.json.encode(step(restored, event)[0]) == msgspec.json.encode(history.search)
        steps.append(progress(history.search))
    assert not history.open
    assert not history.waiting
    assert not history.unannounced
    assert history.search.requested == len(history.search.closed) == len(history.ended)
    assert 0 <= min(steps) <= max(steps) <= 1
