"""TPE: what proposals learn from, and that they need no Optuna when they are only read back."""

import importlib.util
import math

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
    optuna_sampler,
    propose,
    start,
    step,
    unavailable_reason,
)
from services.searcher.methods.optuna_sampler import Point
from services.searcher.methods.protocol import WORST_METRIC

SPACE = {
    "x": {"type": "double", "minval": -5.0, "maxval": 5.0},
    "group": {"lr": {"type": "log", "base": 10, "minval": -5, "maxval": -1}, "plain": "as it is"},
    "kind": {"type": "categorical", "vals": ["bad", None, {"good": True}]},
    "n": {"type": "int", "minval": 1, "maxval": 30},
    "fixed": {"type": "const", "val": 3},
}


def loss(hparams):
    """Smallest, 0, at x = 1, lr = 0.001, n = 20 and the good kind."""
    kind = 0.0 if hparams["kind"] == {"good": True} else 4.0
    lr = math.log10(hparams["group"]["lr"]) + 3
    return (hparams["x"] - 1) ** 2 + lr**2 + ((hparams["n"] - 20) / 5) ** 2 + kind


class Played:
    """A search whose trials report a function of their hyperparameters, one operation at a time."""

    def __init__(self, config, seed=1, sign=1, recorded_hparams=None):
        self.hparams, self.reasons, self.lengths, self.shutdown = {}, [], {}, None
        self.search, operations = start(config, SPACE, seed)
        queue = list(operations)
        while queue:
            operation = queue.pop(0)
            match operation:
                case Create(request_id=id, seed=trial_seed, hparams=drawn):
                    if recorded_hparams is None:
                        hparams, reason = propose(self.search, trial_seed, drawn)
                        self.reasons.append(reason)
                    else:
                        hparams = recorded_hparams[id]
                    self.hparams[id] = hparams
                    event = TrialCreated(id, hparams)
                case ValidateAfter(request_id=id, length=length):
                    self.lengths.setdefault(id, []).append(length)
                    event = ValidationCompleted(id, sign * loss(self.hparams[id]), length)
                case Close(request_id=id):
                    event = TrialClosed(id)
                case Shutdown():
                    self.shutdown = operation
                    continue
            self.search, operations = step(self.search, event)
            queue += operations

    def best(self):
        return min(map(loss, self.hparams.values()))


def test_proposals_get_better_than_chance(config):
    guided, blind = [], []
    for seed in range(4):
        fields = {"max_trials": 50, "max_concurrent_trials": 4}
        guided.append(Played(config("tpe", num_startup_trials=10, **fields), seed).best())
        blind.append(Played(config("random", **fields), seed).best())
    assert sum(guided) < sum(blind) / 2


def test_larger_is_better(config):
    fields = {"max_trials": 40, "num_startup_trials": 8, "max_concurrent_trials": 4}
    minimized = Played(config("tpe", **fields))
    maximized = Played(config("tpe", smaller_is_better=False, **fields), sign=-1)
    assert minimized.hparams == maximized.hparams


@pytest.mark.parametrize("rungs", [None, {"max_rungs": 3, "divisor": 3, "stop_once": True}])
def test_equal_seeds_propose_equally(config, rungs):
    search_config = config("tpe", max_trials=15, rungs=rungs)
    assert Played(search_config).hparams == Played(search_config).hparams
    assert Played(search_config).hparams != Played(search_config, seed=2).hparams


def test_the_first_trials_are_drawn_at_random(config):
    played = Played(config("tpe", max_trials=6, max_concurrent_trials=1, num_startup_trials=3))
    assert played.reasons == [
        *(f"drawn at random: {n} of the first 3 results are there" for n in range(3)),
        *(f"proposed by TPE from {n} results" for n in (3, 4, 5)),
    ]
    assert played.shutdown == Shutdown(cancel=False, failure=False)


def test_rungs_stop_trials(config):
    rungs = {"max_rungs": 3, "divisor": 3, "stop_once": False}
    played = Played(config("tpe", max_trials=18, rungs=rungs))
    assert {lengths[0] for lengths in played.lengths.values()} == {100}
    assert 2 <= sum(len(lengths) == 3 for lengths in played.lengths.values()) <= 6
    assert played.shutdown is not None
    points = played.search.method.points
    assert {points[id].length for id in points} == {100, 300, 900}


@pytest.mark.parametrize(("max_rungs", "max_trials", "lengths"), [(2, 50, [300, 900]), (9, 5, [300, 900])])
def test_there_are_as_many_rungs_as_fit(config, max_rungs, max_trials, lengths):
    rungs = {"max_rungs": max_rungs, "divisor": 3, "stop_once": False}
    search, _ = start(config("tpe", max_trials=max_trials, rungs=rungs), SPACE, 1)
    assert [rung.length for rung in search.method.inner.rungs] == lengths


def test_a_replay_asks_for_no_proposal(config, monkeypatch):
    search_config = config("tpe", max_trials=15)
    live = Played(search_config)
    monkeypatch.setattr(optuna_sampler, "propose", None)
    assert Played(search_config, recorded_hparams=live.hparams).search == live.search


def test_a_search_goes_on_at_random_when_optuna_fails(config, monkeypatch):
    def fail(*_):
        raise ImportError("No module named 'optuna'")

    monkeypatch.setattr(optuna_sampler, "propose", fail)
    played = Played(config("tpe", max_trials=8))
    assert played.reasons[-1].startswith("drawn at random, because optuna could not propose: ImportError")
    assert len(played.hparams) == 8


def test_a_new_search_is_refused_without_optuna(config, monkeypatch):
    assert unavailable_reason(config("tpe")) == ""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install 'steadfast[tpe]'" in unavailable_reason(config("tpe"))
    assert unavailable_reason(config("random")) == ""


def test_other_methods_announce_what_they_drew(config):
    search, _ = start(config("random"), SPACE, 1)
    assert propose(search, 7, {"a": 1}) == ({"a": 1}, "the search method asked for a trial")


@pytest.mark.parametrize(
    ("reason", "point"),
    [
        ("ERRORED", Point(0, {"x": 1}, failed=True)),
        ("INVALID_HP", Point(0, {"x": 1}, failed=True)),
        ("USER_CANCELED", Point(0, {}, failed=True)),
    ],
)
def test_failures_speak_against_a_point_and_people_do_not(config, reason, point):
    search, operations = start(config("tpe", max_trials=5), SPACE, 1)
    id = operations[0].request_id
    search, _ = step(search, TrialCreated(id, {"x": 1}))
    search, _ = step(search, TrialExitedEarly(id, reason))
    assert search.method.points[id] == point
    assert search.method.results == 0
    encoded = msgspec.json.encode(search)
    assert msgspec.json.encode(msgspec.json.decode(encoded, type=Search)) == encoded


def points(count):
    trial_points = []
    for number in range(count):
        x = -5 + 10 * ((number * 7919) % 101) / 101
        group, kind = {"lr": 0.01, "plain": ""}, SPACE["kind"]["vals"][number % 3]
        hparams = {"x": x, "group": group, "kind": kind, "n": 1 + number % 30, "fixed": 3}
        trial_points.append(Point(number, hparams, 9, (x - 2) ** 2))
    return trial_points


def test_proposals_have_the_shape_of_the_space():
    for seed in range(20):
        proposal = optuna_sampler.propose(SPACE, points(10), 9, seed)
        assert list(proposal) == sorted(SPACE)
        assert proposal["fixed"] == 3
        assert proposal["group"]["plain"] == "as it is"
        assert proposal["kind"] in SPACE["kind"]["vals"]
        assert 1e-5 <= proposal["group"]["lr"] <= 0.1
        assert isinstance(proposal["n"], int)
        assert 1 <= proposal["n"] <= 30
        assert -5 <= proposal["x"] <= 5


def test_points_of_every_kind_are_learnt_from():
    odd = [
        Point(90, points(1)[0].hparams),
        Point(91, points(1)[0].hparams, failed=True),
        Point(92, points(1)[0].hparams, 3, 0.5),
        Point(93, {}, failed=True),
        Point(95, points(1)[0].hparams, 9, WORST_METRIC),
        Point(96, points(1)[0].hparams, 3, -WORST_METRIC),
        Point(94, points(1)[0].hparams | {"kind": "unheard of"}, 9, 0.0),
    ]
    assert optuna_sampler.propose(SPACE, odd, 9, 1).keys() == SPACE.keys()
    assert optuna_sampler.propose({"a": 1}, [], 9, 1) == {"a": 1}


def test_equal_arguments_give_equal_proposals():
    proposals = [optuna_sampler.propose(SPACE, points(30), 9, 5) for _ in range(2)]
    assert proposals[0] == proposals[1] != optuna_sampler.propose(SPACE, points(30), 9, 6)
