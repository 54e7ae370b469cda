"""A process that was stopped notices it, and trusts nothing that it reads then."""

import asyncio

from services.kit.suspension import OVERSLEPT_S, SETTLE_S, TICK_S, Awake


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_what_arrives_while_it_runs_is_fresh():
    clock = Clock()
    awake = Awake(clock)
    for _ in range(100):
        clock.now += TICK_S
        assert not awake.overslept()


def test_what_is_read_after_a_stop_is_old_for_a_while():
    clock = Clock()
    awake = Awake(clock)
    clock.now += OVERSLEPT_S + 0.1
    assert awake.overslept()
    clock.now += SETTLE_S / 2
    assert awake.overslept()
    clock.now += SETTLE_S / 2 + 0.1
    assert not awake.overslept()


def test_a_pause_that_an_asker_outwaits_is_none():
    clock = Clock()
    awake = Awake(clock)
    clock.now += OVERSLEPT_S - 0.1
    assert not awake.overslept()


def test_it_looks_by_itself():
    async def main():
        awake = Awake()
        looks = []
        awake.overslept = lambda: looks.append(1)
        running = asyncio.create_task(awake.run())
        while len(looks) < 2:
            await asyncio.sleep(0.01)
        running.cancel()

    asyncio.run(main())
