"""Waiting for facts: whoever waits is looked after when one of their records moves, and at no other time."""

from __future__ import annotations

import asyncio

import pytest

from services.catalogue import waiters
from services.catalogue.waiters import EXPERIMENT_OR_TRIALS, Fact
from tests.gateway import stories as story

POLLS = 10_000


class Looks:
    """Counts how often somebody is looked after."""

    def __init__(self):
        self.count = 0

    def fact(self, holds, *keys):
        def counted(state):
            self.count += 1
            return holds(state)

        return Fact(counted, keys)


@pytest.fixture
def looks():
    return Looks()


def never(_):
    return False


async def begun(gateway, facts):
    tasks = [asyncio.create_task(gateway.catalogue.wait_until(fact)) for fact in facts]
    await asyncio.sleep(0)
    return tasks


async def end(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_folds_that_concern_nobody_look_after_nobody(gateway, looks):
    facts = [looks.fact(never, ("allocations", f"{n}.r1.1")) for n in range(POLLS)]
    tasks = gateway.run(begun(gateway, facts))
    assert looks.count == POLLS
    for id in range(1, 31):
        gateway.apply(story.created(id))
    assert looks.count == POLLS
    # One of them is concerned.
    gateway.apply(story.trial_created(1), *story.running(1))
    gateway.run(asyncio.sleep(0))
    assert looks.count == POLLS + 1
    gateway.run(end(tasks))
    assert len(gateway.catalogue.waiters) == 0


def test_who_waits_for_the_same_record_is_looked_after_in_slices(gateway, looks):
    tasks = gateway.run(begun(gateway, [looks.fact(never, ("experiments", 1))] * POLLS))
    before, slices = looks.count, []

    async def fold():
        gateway.catalogue.waiters.on_records_changed([("experiments", 1), ("experiments", 1)])
        while looks.count < before + POLLS:
            looks_before = looks.count
            await asyncio.sleep(0)
            slices.append(looks.count - looks_before)

    gateway.run(fold())
    assert sum(slices) == POLLS
    assert max(slices) <= waiters.MAX_CHECKS_PER_TURN
    gateway.run(end(tasks))


def test_each_hears_of_what_it_waits_for(gateway, looks):
    one_trial = looks.fact(lambda state: 1 in state.trials, ("trials", 1))
    any_of_two = looks.fact(lambda state: 2 in state.trials, (EXPERIMENT_OR_TRIALS, 2), ("trials", 2))
    at_once = looks.fact(lambda state: True)
    first, second, third = gateway.run(begun(gateway, [one_trial, any_of_two, at_once]))
    assert third.done()
    gateway.apply(story.created(1), story.created(2), story.trial_created(1))
    gateway.run(asyncio.wait_for(first, 60))
    assert not second.done()
    gateway.apply(story.trial_created(2, experiment_id=2))
    gateway.run(asyncio.wait_for(second, 60))
    assert len(gateway.catalogue.waiters) == 0


def test_what_fails_fails_for_its_asker_alone(gateway, looks):
    def broken(state):
        return state.trials[1].ended_at is not None if 1 in state.experiments else False

    bad, good = gateway.run(
        begun(
            gateway,
            [
                looks.fact(broken, ("experiments", 1)),
                looks.fact(lambda state: 1 in state.experiments, ("experiments", 1)),
            ],
        )
    )
    gateway.apply(story.created(1))
    gateway.run(asyncio.wait({bad, good}))
    assert isinstance(bad.exception(), KeyError)
    assert good.exception() is None


def test_who_goes_away_while_it_is_woken_takes_nobody_along(gateway, looks):
    def there(state):
        return 1 in state.experiments

    async def work():
        gone, stays = await begun(gateway, [looks.fact(there, ("experiments", 1))] * 2)
        await gateway.append(story.created(1))
        while not there(gateway.catalogue.state):
            await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait({gone, stays})
        assert stays.exception() is None

    gateway.run(work())
    assert len(gateway.catalogue.waiters) == 0


def test_all_are_looked_after_once_the_state_is_loaded_anew(gateway, looks):
    """What they wait for may have come, and gone, without a record that tells of it."""
    facts = [
        looks.fact(never, ("allocations", "1.r1.1")),
        looks.fact(lambda _: looks.count > 2, ("models", 7)),
    ]
    tasks = gateway.run(begun(gateway, facts))

    async def reload():
        gateway.catalogue.waiters.on_reload()
        await asyncio.sleep(0)

    gateway.run(reload())
    assert [task.done() for task in tasks] == [False, True]
    gateway.run(end(tasks))
