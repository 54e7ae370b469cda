"""A benchmark on a slow disk appends each batch once, whatever of it was answered in time."""

import asyncio

import pytest

from benchmarks.kit.appending import append_until_stored
from services.kit.log import Draft, Fence, FenceLost, OutcomeUnknown
from services.kit.log_memory import MemoryLog

SUBJECT = "control.bench.decision"


class SlowLog(MemoryLog):
    """Answers too late: of each attempt it is said whether the batch is stored before the error."""

    def __init__(self, *is_stored_at):
        super().__init__()
        self.is_stored_at = list(is_stored_at)

    async def append_batch(self, drafts, *, fence):
        if not self.is_stored_at:
            return await super().append_batch(drafts, fence=fence)
        if self.is_stored_at.pop(0):
            await super().append_batch(drafts, fence=fence)
        raise OutcomeUnknown("no answer in time")


def batch(name):
    return [Draft(SUBJECT, b"{}", f"{name} 0"), Draft("control.bench.a.1.b", b"{}", f"{name} 1")]


@pytest.mark.parametrize("attempts", [(), (True,), (False,), (False, False, True), (False, False, False)])
def test_each_batch_is_stored_once(attempts):
    async def work():
        log = SlowLog(*attempts)
        first = await append_until_stored(log, batch("a"), Fence(SUBJECT, 0))
        second = await append_until_stored(log, batch("b"), Fence(SUBJECT, first - 1))
        assert (first, second) == (2, 4)
        assert await log.end("CONTROL", after=0) == 4

    asyncio.run(work())


def test_a_batch_behind_anothers_is_refused():
    async def work():
        log = SlowLog()
        await append_until_stored(log, batch("a"), Fence(SUBJECT, 0))
        with pytest.raises(FenceLost):
            await append_until_stored(log, batch("b"), Fence(SUBJECT, 0))

    asyncio.run(work())
