"""Hyperparameters that are decided when a trial is announced, and children that start from their parents."""

import importlib.util

import msgspec
import pytest

from det_contracts.events import searcher
from det_contracts.problems import Refused
from services.kit.rules import dump
from services.kit.testing import Fold
from services.searcher.app import RULES
from services.searcher.domain.state import LIVE_STATUSES
from services.searcher.methods import optuna_sampler

TPE = {
    "name": "tpe",
    "max_length": 10,
    "max_trials": 6,
    "max_concurrent_trials": 1,
    "num_startup_trials": 3,
}
PBT = {
    "name": "pbt",
    "max_length": 10,
    "population_size": 2,
    "num_rounds": 2,
    "replace_function": {"truncate_fraction": 0.5},
}


def created(events):
    return [e for e in events if isinstance(e, searcher.TrialCreated)]


def play(searching):
    """A search whose trials report the hyperparameter `lr`; returns how they were announced."""
    searching.submit(TPE)
    while searching.state.has_live_trials(1):
        trial = min(t.id for t in searching.state.trials_of(1, *LIVE_STATUSES))
        searching.finish(trial, searching.state.trials[trial].hparams["lr"])
    return created(searching.fold.decided)


def test_trials_are_announced_where_tpe_proposes_them(searching):
    announced = play(searching)
    assert [e.reason.split(":")[0] for e in announced] == ["drawn at random"] * 3 + [
        f"proposed by TPE from {results} results" for results in (3, 4, 5)
    ]
    for event in announced:
        assert searching.state.trials[event.trial_id].hparams == event.hparams
        assert searching.state.searches[1].method.points[event.request_id].hparams == event.hparams
    assert searching.state.experiments[1].state == "COMPLETED"


def test_a_replay_proposes_nothing_and_comes_to_the_same_state(searching, monkeypatch):
    log = []
    apply = searching.fold.apply
    searching.fold.apply = lambda *events, **more: log.extend(events) or apply(*events, **more)
    play(searching)
    monkeypatch.setattr(optuna_sampler, "propose", None)
    again = Fold(RULES).apply(*log)
    assert msgspec.json.encode(dump(again.state)) == msgspec.json.encode(dump(searching.state))
    assert again.decide() == []


def test_a_search_goes_on_without_optuna_and_says_so(searching, monkeypatch):
    searching.submit(TPE)

    def missing(*_):
        raise ImportError("no optuna here")

    monkeypatch.setattr(optuna_sampler, "propose", missing)
    for trial in range(1, 5):
        searching.finish(trial)
    last = created(searching.fold.decided)[-1]
    assert "drawn at random, because optuna could not propose: ImportError('no optuna here')" in last.reason
    assert searching.state.experiments[1].state == "ACTIVE"


def test_a_new_search_without_optuna_is_refused(searching, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Refused, match=r"<config>.searcher: the 'tpe' searcher needs the optuna package"):
        searching.submit(TPE)


def test_a_child_starts_from_its_parents_latest_checkpoint(searching):
    searching.submit(PBT)
    for uuid in ("early", "late"):
        searching.store_checkpoint(1, uuid, 5)
    searching.complete(1, metric=0.1)
    decided = searching.complete(2, metric=0.2)
    (child,) = created(decided)
    runs = {e.trial_id: e for e in searching.fold.decided if isinstance(e, searcher.RunRequested)}
    assert (runs[child.trial_id].checkpoint, runs[child.trial_id].steps_completed) == ("late", 0)
    lengths = {e.trial_id: e.length for e in decided if isinstance(e, searcher.OperationSet)}
    assert lengths == {1: 10, child.trial_id: 5}


def test_a_child_goes_on_from_its_own_checkpoint_once_it_has_one(searching):
    searching.submit(PBT)
    searching.store_checkpoint(1, "parent's", 5)
    searching.complete(1, metric=0.1)
    (child,) = created(searching.complete(2, metric=0.2))
    searching.store_checkpoint(child.trial_id, "own", 3)
    searching.end_run(child.trial_id, outcome="failed", code=1, reason="exit code 1")
    run = [e for e in searching.fold.decided if isinstance(e, searcher.RunRequested)][-1]
    assert (run.trial_id, run.checkpoint, run.steps_completed) == (child.trial_id, "own", 3)
