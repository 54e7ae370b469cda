"""One service cannot process an event: it stands still alone, goes on once told to, and all states agree."""

import pytest

from tests.fixtures.tiers import rest_in_full
from tests.simulation.plan import KINDS
from tests.simulation.poison import poisoned_event
from tests.simulation.simulate import simulate

OWNERS = ("searcher", "scheduler", "checkpoints", "metrics", "gateway")
STEPS = 900


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("seed", rest_in_full(range(2)))
def test_who_cannot_fold_an_event_stands_still_and_goes_on_without_it(owner, seed):
    result = simulate(seed, also=[poisoned_event(owner)], steps=STEPS, gateways=2)
    assert result.violation is None, result.story
    assert result.counts["stood and went on"] == 1


@pytest.mark.parametrize("seed", rest_in_full(range(3)))
def test_who_cannot_save_an_event_stands_still_and_goes_on_without_it(seed):
    trouble = poisoned_event("gateway", saving=True)
    # A gateway goes back to the event before, which pages may have gone beyond; see docs/decisions/0068.
    result = simulate(seed, off=["clients"], also=[trouble], steps=STEPS, gateways=2)
    assert result.violation is None, result.story
    assert result.counts["stood and went on"] == 1


def test_who_stands_still_for_no_reason_is_found():
    """What the scenario permits, nobody else may do."""

    async def unexpected(world, chance):
        world.poison.plant(world.rules["searcher"], "poison-searcher")
        world.poison.may_stand = lambda owner: False
        await poisoned_event("searcher")(world, chance)

    result = simulate(0, off=KINDS, also=[unexpected], steps=STEPS)
    assert "services stay up" in str(result.violation)
