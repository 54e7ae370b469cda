"""Users and scripts that never pause: everybody else is still served."""

import pytest

from services.kit.decider import Decider
from services.kit.rules import every_key
from tests.fixtures.tiers import rest_in_full
from tests.simulation.saturation import saturate, submits, switches, toggles
from tests.simulation.violation import Violation


@pytest.mark.parametrize("seed", rest_in_full(range(3)))
def test_commands_without_pause_delay_no_decision_by_more_than_a_turn(seed):
    world = saturate(seed, [submits, toggles, toggles, switches])
    counts = world.ledger.counts
    assert counts["trials"] > 20
    assert counts["assignments"] > 20
    assert 0 < world.promptness.longest <= 3


def test_commands_first_would_starve_decisions(monkeypatch):
    decide = Decider._decide

    async def commands_first(self):
        self._turn = -1
        return await decide(self)

    monkeypatch.setattr(Decider, "_decide", commands_first)
    with pytest.raises(Violation, match="nothing starves"):
        saturate(0, [submits, toggles, toggles, switches])


def test_nothing_is_kept_of_what_was_asked():
    world = saturate(1, [toggles, toggles, switches], answers=1000)
    for replica in (replica for replica in world.replicas if replica.leads and hasattr(replica, "runner")):
        runner = replica.runner
        assert not runner.decider.unreacted
        assert not runner.decider._unconfirmed
        assert not runner.decider._commands
    for owner, state in world.truth.items():
        # Two experiments with two trials each, some runs and workers.
        assert len(every_key(state)) < 100, owner
