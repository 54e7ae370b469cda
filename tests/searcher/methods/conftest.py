"""What tests of search methods share: configurations, and a search that is driven by hand."""

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
}


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
        self.ids, self.asked, self.shutdown = [], [], None
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
        self.asked += self.last

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


@pytest.fixture(scope="session")
def driven(config):
    """`driven(name, **fields)`: a started search."""
    return lambda name, space=None, **fields: Driven(config(name, **fields), space)
