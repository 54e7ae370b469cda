"""The virtual loop: time that jumps, and deadlocks that are reported."""

import asyncio

import pytest

from tests.simulation.loop import RESOLUTION_S, Deadlock, at_once, run


def test_an_hour_takes_no_time_and_timers_go_off_in_order():
    async def main():
        loop = asyncio.get_running_loop()
        order = []

        async def after(seconds):
            await asyncio.sleep(seconds)
            order.append((seconds, loop.time()))

        await asyncio.gather(after(3600.0), after(0.5), after(60.0))
        return order

    assert run(main()) == [(0.5, 0.5), (60.0, 60.0), (3600.0, 3600.0)]


def test_a_deadline_passes_in_virtual_time():
    async def main():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 100)
        return asyncio.get_running_loop().time()

    assert run(main()) == 100.0


def test_who_waits_for_the_last_digits_of_a_time_reaches_it():
    """With a clock that stands still meanwhile, a decider would look at its due time for ever."""

    async def story():
        due, naps = RESOLUTION_S / 2, 0
        while asyncio.get_running_loop().time() < due and naps < 10:
            await asyncio.sleep(due - asyncio.get_running_loop().time())
            naps += 1
        return naps

    assert run(story()) == 1


def test_everybody_waiting_is_a_deadlock():
    with pytest.raises(Deadlock):
        run(asyncio.Event().wait())


def test_what_never_waits_is_there_at_once():
    async def answer():
        return 42

    assert at_once(answer()) == 42
    with pytest.raises(RuntimeError, match="waited"):
        at_once(asyncio.sleep(0))
