"""Waiting for a position: each is woken at its own, and whoever goes away leaves nothing behind."""

import asyncio
import contextlib

from services.kit.awaitable_position import AwaitablePosition


def test_each_is_woken_at_its_position():
    async def work():
        reached, woken = AwaitablePosition(3), []

        async def wait(position):
            await reached.wait_for_position(position)
            woken.append(position)

        tasks = [asyncio.create_task(wait(position)) for position in (9, 2, 5, 7, 5)]
        for position in (3, 5, 6, 4, 9):
            await asyncio.sleep(0)
            reached.advance(position)
            await asyncio.sleep(0)
            assert sorted(woken) == [p for p in (2, 5, 5, 7, 9) if p <= reached.position]
        await asyncio.gather(*tasks)

    asyncio.run(work())


def test_who_came_first_is_woken_first():
    async def work():
        reached, woken = AwaitablePosition(), []

        async def wait(number):
            await reached.wait_for_position(5)
            woken.append(number)

        # Futures lie where others lay before, in no order.
        tasks = [asyncio.create_task(wait(number)) for number in range(200)]
        await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()
        tasks += [asyncio.create_task(wait(number)) for number in range(200, 300)]
        await asyncio.sleep(0)
        reached.advance(5)
        await asyncio.wait(tasks)
        assert woken == sorted(woken)
        assert len(woken) == 300 - len(tasks[:200:3])

    asyncio.run(work())


def test_who_goes_away_leaves_nothing_behind():
    async def work():
        reached = AwaitablePosition()
        for _ in range(100):
            gone = [asyncio.create_task(reached.wait_for_position(at)) for at in (5, 6) for _ in range(10)]
            await asyncio.sleep(0)
            for task in gone:
                task.cancel()
            await asyncio.wait(gone)
        assert [len(waiters) for waiters in reached._waiting.values()] == [0, 0]
        assert sorted(reached._marks) == [5, 6]
        reached.advance(6)
        assert (reached._waiting, reached._marks) == ({}, [])

    asyncio.run(work())


def test_who_is_cancelled_as_it_is_woken_takes_nobody_along():
    async def work():
        reached = AwaitablePosition()
        cancelled, other = (asyncio.create_task(reached.wait_for_position(1)) for _ in range(2))
        await asyncio.sleep(0)
        reached.advance(1)
        cancelled.cancel()
        await asyncio.wait([cancelled, other])
        assert cancelled.cancelled()
        assert other.exception() is None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0):
                await reached.wait_for_position(2)

    asyncio.run(work())
