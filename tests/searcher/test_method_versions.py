"""A method that decides otherwise in a later release: searches that began before go on as they began."""

import msgspec
import pytest

from det_contracts.envelope import Recorded
from services.kit.rules import dump
from services.kit.testing import Fold
from services.searcher.app import RULES
from services.searcher.domain import State, evolve
from services.searcher.methods import choose as methods
from services.searcher.methods import search
from services.searcher.methods.random import RandomSearch

THREE = {"name": "random", "max_length": 10, "max_trials": 3, "max_concurrent_trials": 1}
AS_IT_IS = methods.choose


def changed(searcher, space, smaller_is_better, version):
    """In the release that follows, `random` trains for twice as long."""
    made = AS_IT_IS(searcher, space, smaller_is_better, min(version, 1))
    if version < 2:
        return made
    assert isinstance(made, RandomSearch)
    return msgspec.structs.replace(made, max_length=2 * made.max_length)


class Logged(Fold):
    """Keeps what it folds."""

    def __init__(self, rules):
        super().__init__(rules)
        self.log = []

    def _evolve(self, recorded):
        self.log.append(recorded)
        return super()._evolve(recorded)


@pytest.fixture
def searching(searching):
    searching.fold = Logged(RULES)
    return searching


@pytest.fixture
def next_release(monkeypatch):
    def install():
        declared = methods.DECLARATIONS["random"]
        monkeypatch.setitem(methods.DECLARATIONS, "random", declared._replace(version=2))
        monkeypatch.setattr(search, "choose", changed)

    return install


def folded_anew(fold):
    state = State()
    for recorded in fold.log:
        list(RULES.evolve(state, recorded))
    return state


def lengths(state, experiment_id):
    return [trial.length for trial in state.trials_of(experiment_id)]


def test_a_search_goes_on_as_it_began(searching, next_release):
    searching.submit(THREE)
    next_release()
    searching.submit(THREE)
    searching.finish(1)
    state = searching.state
    assert lengths(state, 1) == [10, 10]
    assert lengths(state, 2) == [20]
    assert dump(folded_anew(searching.fold)) == dump(state)


def test_a_release_that_has_not_got_the_version_says_so(searching, next_release, monkeypatch):
    with monkeypatch.context():
        next_release()
        searching.submit(THREE)
    created = searching.fold.log[0]
    monkeypatch.undo()
    message = (
        "version 2 of the method 'random', and this release has version 1: run the searcher of the release"
    )
    with pytest.raises(methods.UnknownVersion, match=message):
        list(evolve(State(), Recorded(1, created.event, "", "", 0.0, "", "CONTROL")))
