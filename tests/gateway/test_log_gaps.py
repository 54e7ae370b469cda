"""What lies between two positions of LOGS is read whole, from a broker that is behind the others, too."""

import asyncio

import pytest

from det_contracts import subjects
from services.kit.log import Draft, OutcomeUnknown
from services.kit.log_memory import MemoryLog
from services.live import tails
from services.live.tails import messages_between
from tests.fixtures.lagging_log import LaggingLog

TASK, OTHER = subjects.logs("1.a"), subjects.logs("1.b")


async def append(log, *log_subjects):
    for number, subject in enumerate(log_subjects):
        await log.append(Draft(subject, b"a line", f"{subject} {number}"))


async def read_all(log, after, through):
    return [m.position async for batch in messages_between(log, [TASK], after, through) for m in batch]


@pytest.mark.parametrize("through", [None, 3, 4])
def test_a_broker_that_is_behind_is_waited_for(through):
    async def work():
        log = LaggingLog()
        await append(log, TASK, OTHER, TASK, OTHER)
        reading = asyncio.create_task(read_all(log, 0, through))
        while not log.opened:
            await asyncio.sleep(0)
        log.caught_up.set()
        assert await reading == [1, 3]

    asyncio.run(work())


def test_later_messages_end_the_read_but_are_not_part_of_it():
    async def work():
        log = LaggingLog()
        log.caught_up.set()
        await append(log, TASK, OTHER, OTHER, TASK)
        assert await read_all(log, 0, 2) == [1]

    asyncio.run(work())


def test_where_nothing_lies_between_nothing_is_opened():
    async def work():
        log = LaggingLog()
        await append(log, TASK, OTHER)
        assert await read_all(log, 1, 2) == []
        assert log.opened == 0

    asyncio.run(work())


def test_what_is_removed_meanwhile_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(tails, "LOOK_AGAIN_S", 0.01)

    async def work():
        log = LaggingLog()
        await append(log, TASK, OTHER)
        reading = asyncio.create_task(read_all(log, 0, None))
        while not log.opened:
            await asyncio.sleep(0)
        await log.forget(subjects.LOGS, 1)
        assert await reading == []

    asyncio.run(work())


def test_a_broker_that_does_not_answer_is_told(monkeypatch):
    monkeypatch.setattr(tails, "PATIENCE_S", 0.01)

    class Silent(MemoryLog):
        async def last(self, subject):
            await asyncio.Event().wait()

    with pytest.raises(OutcomeUnknown, match="does not say what is in LOGS"):
        asyncio.run(read_all(Silent(), 0, None))
