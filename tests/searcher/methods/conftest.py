"""What tests of search methods share: configurations, and a search that is driven by hand."""

import random

import msgspec
import pytest

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
    start,
    step,
)

HALVING = {"max_trials": 12, "divisor": 3, "max_concurrent_trials": 16, "stop_once": False}
METHODS = {
    "single": {},
    "random": {"max_trials": 4, "max_concurrent_trials": 2},
    "grid": {"max_concurrent_trials": 2},
    "async_halving": {"num_rungs": 3, **HALVING},
    "adaptive_asha": {"mode": "standard", "max_rungs": 5, "bracket_rungs": [], **HALVING},
    "tpe": {"max_trials": 12, "max_concurrent_trials": 4, "num_startup_trials": 3, "rungs": None},
    "pbt": {
        "population_size": 5,
        "num_rounds": 3,
        "replace_function": {"truncate_fraction": 0.4},
        "explore_function": {"resample_probability": 0.2, "perturb_factor": 0.2},
    },
}
REASONS = ["ERRORED", "USER_REQUESTED_STOP", "USER_CANCELED", "INVALID_HP", "INIT_INVALID_HP"]
ANY_METRIC = [0.0, 1.0, -3, "NaN", "Infinity", "-Infinity", 1e308]


@pytest.fixture(scope="session")
def config():
    """`config(name, **fields)`: the searcher section of a completed configuration."""

    def build(name, **fields):
        common = {"name": name, "metric": "loss", "smaller_is_better": True, "max_length": 900}
        return common | METHODS[name] | fields

    return build


class Driven:
    """A search whose trials have names in order of creation: 0, 1, 2..."""

    def __init__(self, config, space=None, seed=1):
        self.ids, self.operations, self.shutdown = [], [], None
        self.search, operations = start(config, space or {}, seed)
        self._take(operations)

    def _take(self, operations):
        self.last = []
        for operation in operations:
            match operation:
                case Create(request_id=id):
                    self.ids.append(id)
                    self.last.append(("create", len(self.ids) - 1))
                case ValidateAfter(request_id=id, length=length):
                    self.last.append(("train", self.ids.index(id), length))
                case Close(request_id=id):
                    self.last.append(("close", self.ids.index(id)))
                case Shutdown():
                    self.shutdown = operation
        self.operations += self.last

    def tell(self, event):
        """One event; returns what the search asks for on it."""
        self.search, operations = step(self.search, event)
        encoded = msgspec.json.encode(self.search)
        assert msgspec.json.decode(encoded, type=Search) == self.search
        self._take(operations)
        return self.last

    def create(self, *trials):
        for trial in trials:
            self.tell(TrialCreated(self.ids[trial]))

    def report(self, trial, metric):
        return self.tell(ValidationCompleted(self.ids[trial], metric, 0))

    def exit(self, trial, reason):
        return self.tell(TrialExitedEarly(self.ids[trial], reason))

    def close(self, trial):
        return self.tell(TrialClosed(self.ids[trial]))

    def give_up(self, trial, reason):
        """As it goes in life: an early exit, then the end of the trial."""
        return [*self.exit(trial, reason), *self.close(trial)]


class History:
    """Trials as an experiment keeps them; gives the next event at random until the search is over.

    On the way `exits` trials give up.
    """

    def __init__(self, config, space, seed, exits):
        self.random = random.Random(seed)
        self.exits, self.hparams = exits, {}
        self.unannounced, self.open, self.waiting = [], {}, set()
        self.told_to_close, self.ended, self.queue = set(), set(), []
        self.shutdown = None
        self.search, operations = start(config, space, seed)
        self.take(operations)
        self.most_open = len(self.unannounced)

    def take(self, operations):
        assert self.shutdown is None or not operations
        for operation in operations:
            match operation:
                case Create(request_id=id, hparams=hparams, parent=parent):
                    assert parent is None or parent in self.hparams
                    self.hparams[id] = hparams
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
            return TrialCreated(id, self.hparams[id])
        if id in self.open:
            if self.random.random() < 0.2:
                return TrialProgress(id, self.random.uniform(0, self.open[id]))
            self.waiting.add(id)
            return ValidationCompleted(id, self.random.choice(ANY_METRIC), self.open.pop(id))
        self.waiting.discard(id)
        self.ended.add(id)
        return TrialClosed(id)

    def go(self):
        event = self.next_event()
        before = self.search
        self.search, operations = step(before, event)
        self.take(operations)
        return before, event, operations


@pytest.fixture(scope="session")
def histories():
    """`histories(config, space, seed, exits)`: a search among trials that do as they like."""
    return History


@pytest.fixture(scope="session")
def driven(config):
    """`driven(name, **fields)`: a started search."""
    return lambda name, space=None, **fields: Driven(config(name, **fields), space)
