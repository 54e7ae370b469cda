"""Places: so many in all, so many for one user, in turn, and none is lost with whoever goes away."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from services.kit.admission import Admission, Busy


class Inside:
    """Who has a place, and what was ever too many."""

    def __init__(self, **limits):
        self.places = Admission("pieces of work", **limits)
        self.limits = limits
        self.order = []
        self.now = Counter()
        self.go = asyncio.Event()

    async def enter(self, who):
        async with self.places.hold(who):
            self.order.append(who)
            self.now[who] += 1
            assert self.now[who] <= self.limits["each"]
            assert self.now.total() <= self.limits["at_once"]
            try:
                await self.go.wait()
            finally:
                self.now[who] -= 1


async def settled():
    for _ in range(10):
        await asyncio.sleep(0)


async def ended(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_one_user_does_not_take_the_places_of_others():
    async def work():
        inside = Inside(at_once=3, each=2)
        tasks = [asyncio.create_task(inside.enter(who)) for who in ("a", "a", "a", "a", "b", "c", "d")]
        await settled()
        assert inside.order == ["a", "a", "b"]
        tasks[4].cancel()
        await settled()
        assert inside.order == ["a", "a", "b", "c"]
        tasks[0].cancel()
        await settled()
        assert inside.order[4:] == ["a"]
        await ended(tasks)
        assert inside.places.active == inside.places.queued == 0

    asyncio.run(work())


def test_a_full_queue_is_refused_with_what_to_do():
    async def work():
        inside = Inside(at_once=2, each=1, waiting=3, each_waiting=1)
        tasks = [asyncio.create_task(inside.enter(who)) for who in ("a", "b", "a", "c", "d")]
        await settled()
        with pytest.raises(Busy, match="you have 1 pieces of work already, the maximum per client") as own:
            await inside.enter("a")
        with pytest.raises(Busy, match="there are 2 pieces of work already, the maximum") as full:
            await inside.enter("e")
        assert (own.value.problem.code, full.value.problem.code) == ("exhausted", "unavailable")
        await ended(tasks)

    asyncio.run(work())


def test_waiting_too_long_is_refused_with_the_reason():
    async def work():
        inside = Inside(at_once=1, each=1, patience_s=0.001)
        first = asyncio.create_task(inside.enter("a"))
        await settled()
        with pytest.raises(Busy):
            await inside.enter("b")
        assert inside.places.queued == 0
        await ended([first])

    asyncio.run(work())


@pytest.mark.parametrize("seed", range(20))
def test_whoever_goes_away_at_whatever_turn_leaves_its_place(seed):
    async def work():
        chance = random.Random(seed)
        inside, tasks = Inside(at_once=3, each=2), []
        for _ in range(300):
            tasks.append(asyncio.create_task(inside.enter(chance.choice("abcd"))))
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
            if chance.random() < 0.7:
                chance.choice(tasks).cancel()
        inside.go.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert inside.places.active == inside.places.queued == 0
        assert not inside.places._active
        assert not inside.places._queued_by_user
        # All places are there again.
        inside.go.clear()
        last = [asyncio.create_task(inside.enter(who)) for who in "efg"]
        await settled()
        assert inside.places.active == 3
        await ended(last)

    asyncio.run(work())
