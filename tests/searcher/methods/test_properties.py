"""Any history of a search: trials report, fail, are stopped by people and found invalid, in any order."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from services.searcher.methods import Search, progress, step

SPACE = {"a": {"type": "int", "minval": 0, "maxval": 5, "count": 4}, "b": {"c": {"type": "const", "val": 1}}}

concurrent = st.integers(0, 9)
trials = st.integers(1, 25)
halving = {
    "max_trials": trials,
    "max_concurrent_trials": concurrent,
    "divisor": st.sampled_from([1.5, 2, 3, 4]),
    "stop_once": st.booleans(),
}
common = {"max_length": st.integers(1, 50), "smaller_is_better": st.booleans()}


def configs(name, **fields):
    return st.fixed_dictionaries({"name": st.just(name)} | common | fields)


seeds = st.integers(0, 2**32 - 1)
brackets = configs("async_halving", num_rungs=st.integers(1, 4), **halving)
searches = st.one_of(
    configs("single"),
    configs("random", max_trials=trials, max_concurrent_trials=concurrent),
    configs("grid", max_concurrent_trials=concurrent),
    brackets,
    configs(
        "adaptive_asha",
        **halving,
        max_rungs=st.integers(1, 5),
        mode=st.sampled_from(["aggressive", "standard", "conservative"]),
        bracket_rungs=st.lists(st.integers(1, 4), max_size=3),
    ),
    configs(
        "tpe",
        max_trials=trials,
        max_concurrent_trials=concurrent,
        num_startup_trials=st.integers(1, 9),
        rungs=st.none()
        | st.fixed_dictionaries(
            {"max_rungs": st.integers(1, 4), "divisor": halving["divisor"], "stop_once": st.booleans()}
        ),
    ),
    configs(
        "pbt",
        max_length=st.integers(5, 50),
        population_size=st.integers(1, 7),
        num_rounds=st.integers(1, 5),
        replace_function=st.fixed_dictionaries({"truncate_fraction": st.sampled_from([0, 0.2, 0.34, 0.5])}),
        explore_function=st.just({"resample_probability": 0.3, "perturb_factor": 0.2}),
    ),
)


@settings(max_examples=150)
@given(searches, seeds, st.integers(0, 12))
def test_every_search_comes_to_its_end(histories, config, seed, exits):
    history = histories(config, SPACE, seed, exits)
    while history.shutdown is None:
        history.go()
        assert len(history.open) <= history.most_open
        assert 0 <= progress(history.search) <= 1
    assert history.search.requested == len(history.search.closed) == len(history.ended)
    assert not history.open
    assert not history.waiting


@settings(max_examples=60)
@given(searches, seeds, st.integers(0, 6))
def test_a_step_changes_nothing_but_its_answer(histories, config, seed, exits):
    history = histories(config, SPACE, seed, exits)
    while history.shutdown is None:
        encoded = msgspec.json.encode(history.search)
        before, event, operations = history.go()
        assert msgspec.json.encode(before) == encoded
        restored = msgspec.json.decode(encoded, type=Search)
        assert step(restored, event) == (history.search, operations)
        assert msgspec.json.encode(step(before, event)[0]) == msgspec.json.encode(history.search)


@settings(max_examples=60)
@given(
    brackets,
    st.integers(0, 2**32 - 1),
    st.integers(0, 9),
)
def test_rungs_stay_in_order_and_hold_a_trial_once(histories, config, seed, exits):
    history = histories(config, SPACE, seed, exits)
    while history.shutdown is None:
        history.go()
        *lower, top = history.search.method.rungs
        for rung in lower:
            metrics = [entry.metric for entry in rung.entries]
            assert metrics == sorted(metrics)
        for rung in (*lower, top):
            ids = [entry.request_id for entry in rung.entries]
            assert len(ids) == len(set(ids))
    method = history.search.method
    assert len(method.rung_of) - method.invalid == method.max_trials == len(method.rungs[0].entries)
    assert not method.awaited
