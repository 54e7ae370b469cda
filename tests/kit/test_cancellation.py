"""Whoever is cancelled finishes its cleanup, however often it is cancelled meanwhile."""

import asyncio

import pytest

from services.kit.cancellation import cancel_and_wait, cancel_in_background, finish


class Holder:
    """Holds two things, and lets each go at an await of its own."""

    def __init__(self):
        self.held = {"first", "second"}
        self.cleaning = asyncio.Event()

    async def run(self):
        try:
            await asyncio.Event().wait()
        finally:
            await self.clean_up()

    async def clean_up(self):
        for name in ("first", "second"):
            self.cleaning.set()
            # As a message to the broker does, it takes a few turns of the loop.
            for _ in range(3):
                await asyncio.sleep(0)
            self.held.discard(name)


async def released(holder):
    async with asyncio.timeout(60):
        while holder.held:
            await asyncio.sleep(0)


async def started(work):
    task = asyncio.create_task(work)
    await asyncio.sleep(0)
    return task


def test_one_that_is_cancelled_in_the_background_is_cancelled_once():
    async def work():
        holder = Holder()
        task = await started(holder.run())
        cancel_in_background(task)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert holder.held == set()

    asyncio.run(work())


def test_who_waits_for_the_end_may_be_cancelled_itself():
    async def work():
        holder = Holder()
        task = await started(holder.run())
        waiting = await started(cancel_and_wait(task))
        await holder.cleaning.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await released(holder)

    asyncio.run(work())


@pytest.mark.parametrize("turns", range(8))
def test_a_cleanup_is_finished_wherever_it_is_interrupted(turns):
    async def work():
        holder = Holder()
        task = await started(finish(holder.clean_up()))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await released(holder)

    asyncio.run(work())
