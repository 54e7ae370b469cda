"""Any history of a search: trials report, fail, are stopped by people and found invalid, in any order."""

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from services.searcher.methods import (
    Close,
    Create,
    Search,
    Shutdown,
    TrialClosed,
    TrialCreated,
    TrialExitedEarly,
    TrialProgress,
    ValidateAfter,
    ValidationCompleted,
    progress,
    start,
    step,
)

REASONS = ["ERRORED", "USER_REQUESTED_STOP", "USER_CANCELED", "INVALID_HP", "INIT_INVALID_HP"]
METRICS = [0.0, 1.0, -3, "NaN", "Infinity", "-Infinity", 1e308]
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
    return st.fixed_dictionaries({"name": st.just(name), **common, **fields})


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
)


class History:
    """Trials as an experiment keeps them; gives the next event at random until the search is over."""

    def __init__(self, config, seed, exits):
        self.random = random.Random(seed)
        self.exits = exits
        self.unannounced, self.open, self.waiting = [], {}, set()
        self.told_to_close, self.ended, self.queue = set(), set(), []
        self.shutdown = None
        self.search, operations = start(config, SPACE, seed)
        self.take(operations)
        self.most_open = len(self.unannounced)

    def take(self, operations):
        assert self.shutdown is None or not operations
        for operation in operations:
            match operation:
                case Create(request_id=id):
                    self.unannounced.append(id)
                case ValidateAfter(request_id=id, length=length):
                    assert id not in self.ended
                    assert id not in self.told_to_close
                    self.open[id] = length
                    self.waiting.discard(id)
                case Close(request_id=id):
                    assert id not in self.told_to_close
                    self.told_to_close.add(id)
                case Shutdown():
                    self.shutdown = operation

    def next_event(self):
        if self.queue:
            return self.queue.pop()
        done = [id for id in self.waiting if id in self.told_to_close]
        running = [id for id in self.open if id not in self.unannounced]
        able = [*self.unannounced, *running, *done]
        assert able, "the search waits for nobody, yet it is not over"
        living = sorted({*running, *self.waiting})
        if self.exits and living and self.random.random() < 0.3:
            self.exits -= 1
            return self._exit(self.random.choice(living))
        return self._go_on(self.random.choice(sorted(able)))

    def _exit(self, id):
        reason = self.random.choice(REASONS)
        # One that had reported already makes room for nobody, yet an invalid point is replaced.
        self.most_open += id in self.waiting and "INVALID" in reason
        self.open.pop(id, None)
        self.waiting.discard(id)
        self.ended.add(id)
        self.queue = [TrialClosed(id)]
        return TrialExitedEarly(id, reason)

    def _go_on(self, id):
        if id in self.unannounced:
            self.unannounced.remove(id)
            return TrialCreated(id)
        if id in self.open:
            if self.random.random() < 0.2:
                return TrialProgress(id, self.random.uniform(0, self.open[id]))
            self.waiting.add(id)
            return ValidationCompleted(id, self.random.choice(METRICS), self.open.pop(id))
        self.waiting.discard(id)
        self.ended.add(id)
        return TrialClosed(id)

    def go(self):
        event = self.next_event()
        before = self.search
        self.search, operations = step(before, event)
        self.take(operations)
        return before, event, operations


@settings(max_examples=150, deadline=None)
@given(searches, seeds, st.integers(0, 12))
def test_every_search_comes_to_its_end(config, seed, exits):
    history = History(config, seed, exits)
    while history.shutdown is None:
        history.go()
        assert len(history.open) <= history.most_open
        assert 0 <= progress(history.search) <= 1
    assert history.search.requested == len(history.search.closed) == len(history.ended)
    assert not history.open
    assert not history.waiting


@settings(max_examples=60, deadline=None)
@given(searches, seeds, st.integers(0, 6))
def test_a_step_changes_nothing_but_its_answer(config, seed, exits):
    history = History(config, seed, exits)
    while history.shutdown is None:
        encoded = msgspec.json.encode(history.search)
        before, event, operations = history.go()
        assert msgspec.json.encode(before) == encoded
        restored = msgspec.json.decode(encoded, type=Search)
        assert step(restored, event) == (history.search, operations)
        assert msgspec.json.encode(step(before, event)[0]) == msgspec.json.encode(history.search)


@settings(max_examples=60, deadline=None)
@given(
    brackets,
    st.integers(0, 2**32 - 1),
    st.integers(0, 9),
)
def test_rungs_stay_in_order_and_hold_a_trial_once(config, seed, exits):
    history = History(config, seed, exits)
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
