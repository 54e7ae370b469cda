"""Pools that are bound to workspaces, as the searcher goes by them."""

import pytest

from det_contracts.commands import ChangeExperiment
from det_contracts.events import gateway
from det_contracts.problems import Refused
from services.kit.overlay import view_of

SINGLE = {"name": "single", "max_length": 10}


def bound(searching, *workspaces):
    searching.decisions_after(gateway.PoolBound(pool="default", workspaces=workspaces, reason="test"))


def test_an_experiment_from_elsewhere_is_refused_and_changes_nothing(searching):
    bound(searching, 2)
    with pytest.raises(Refused, match=r"is not available to workspace id 1.*'Uncategorized'") as refusal:
        searching.submit(SINGLE)
    assert refusal.value.problem.code == "invalid_argument"
    assert searching.state.experiments == {}
    bound(searching, 1, 2)
    searching.submit(SINGLE)
    bound(searching)
    assert searching.state.bindings == {}
    searching.submit(SINGLE)


def test_what_was_submitted_before_goes_on(searching):
    id = searching.submit(SINGLE, activate=False)
    bound(searching, 2)
    searching.fold.rule(ChangeExperiment(experiment_id=id, action="activate", user="admin"))
    searching.decide()
    (trial,) = searching.state.trials.values()
    assert (trial.run, trial.allocation_id) == (1, f"{trial.task_id}.1"), "it wants slots"


def test_a_view_of_the_state_leaves_bindings_as_they_are(searching):
    bound(searching, 2)
    view = view_of(searching.state)
    view.bindings.pop("default")
    assert "default" in searching.state.bindings
