"""What lies between two positions of the log is read whole, from a broker that is behind the others, too."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from det_contracts import subjects
from services.kit import log_range
from services.kit.log import Draft, OutcomeUnknown
from services.kit.log_memory import MemoryLog
from services.kit.log_range import read_between, read_range
from tests.fixtures.lagging_log import LaggingLog

TASK, OTHER = subjects.logs("1.a"), subjects.logs("1.b")


async def append(log, *log_subjects):
    for number, subject in enumerate(log_subjects):
        await log.append(Draft(subject, b"a line", f"{subject} {number}"))


async def read_all(log, *, stream=subjects.LOGS, filters=(TASK,), **where):
    messages = [
        message async for batch in read_between(log, stream, subjects=filters, **where) for message in batch
    ]
    assert await read_range(log, stream, subjects=filters, **where) == messages
    return [message.position for message in messages]


@pytest.mark.parametrize("before", [None, 4, 5])
def test_a_broker_that_is_behind_is_waited_for(before):
    async def work():
        log = LaggingLog()
        await append(log, TASK, OTHER, TASK, OTHER)
        reading = asyncio.create_task(read_all(log, before=before))
        while not log.opened:
            await asyncio.sleep(0)
        log.caught_up.set()
        assert await reading == [1, 3]

    asyncio.run(work())


def test_of_a_broker_that_stays_behind_another_one_is_read(monkeypatch):
    monkeypatch.setattr(log_range, "LOOK_AGAIN_S", 0.01)

    class OneOfThree(MemoryLog):
        """Of its brokers one is behind, from which it is read first."""

        def __init__(self):
            super().__init__()
            self.feeds = 0

        @asynccontextmanager
        async def read(self, stream, *, after, subjects=()):
            self.feeds += 1
            log = LaggingLog(self) if self.feeds == 1 else super()
            async with log.read(stream, after=after, subjects=subjects) as feed:
                yield feed

    async def work():
        log = OneOfThree()
        await append(log, TASK, OTHER, TASK)
        assert await read_all(log) == [1, 3]
        assert log.feeds == 3

    asyncio.run(work())


def test_later_messages_end_the_read_but_are_not_part_of_it():
    async def work():
        log = LaggingLog()
        log.caught_up.set()
        await append(log, TASK, OTHER, OTHER, TASK)
        assert await read_all(log, before=3) == [1]

    asyncio.run(work())


def test_where_nothing_lies_between_nothing_is_opened():
    async def work():
        log = LaggingLog()
        await append(log, TASK, OTHER)
        assert await read_all(log, after=1) == []
        assert await read_all(log, after=0, before=1) == []
        assert log.opened == 0

    asyncio.run(work())


def test_what_is_removed_meanwhile_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(log_range, "LOOK_AGAIN_S", 0.01)

    async def work():
        log = LaggingLog()
        await append(log, TASK, OTHER)
        reading = asyncio.create_task(read_all(log))
        while not log.opened:
            await asyncio.sleep(0)
        await log.forget(subjects.LOGS, 1)
        assert await reading == []

    asyncio.run(work())


def test_a_broker_that_does_not_answer_is_told(monkeypatch):
    monkeypatch.setattr(log_range, "PATIENCE_S", 0.01)

    class Silent(MemoryLog):
        async def end(self, stream, *, after, subjects=()):
            await asyncio.Event().wait()

    with pytest.raises(OutcomeUnknown, match="does not say what is in LOGS"):
        asyncio.run(read_all(Silent()))
