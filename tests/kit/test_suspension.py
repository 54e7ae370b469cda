"""A process that was stopped notices it, and trusts nothing that it reads then."""

import asyncio

from services.kit.suspension import SETTLE_S, SUSPENDED_S, TICK_S, SuspensionDetector


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_what_arrives_while_it_runs_is_fresh():
    clock = Clock()
    awake = SuspensionDetector(clock)
    for _ in range(100):
        clock.now += TICK_S
        assert not awake.was_suspended()


def test_what_is_read_after_a_stop_is_old_for_a_while():
    clock = Clock()
    awake = SuspensionDetector(clock)
    clock.now += SUSPENDED_S + 0.1
    assert awake.was_suspended()
    clock.now += SETTLE_S / 2
    assert awake.was_suspended()
    clock.now += SETTLE_S / 2 + 0.1
    assert not awake.was_suspended()


def test_a_pause_that_an_asker_outwaits_is_none():
    clock = Clock()
    awake = SuspensionDetector(clock)
    clock.now += SUSPENDED_S - 0.1
    assert not awake.was_suspended()


def test_it_looks_by_itself():
    async def main():
        awake = SuspensionDetector()
        looks = []
        awake.was_suspended = lambda: looks.append(1)
        running = asyncio.create_task(awake.run())
        while len(looks) < 2:
            await asyncio.sleep(0.01)
        running.cancel()

    asyncio.run(main())
