"""Nobody fills the log, which is kept for good: neither with many small changes nor with few large ones."""

import asyncio

import pytest

from det_contracts import subjects
from det_contracts.problems import Refused
from services.kit import log_budget
from services.kit.log_budget import OVERHEAD_BYTES, LogBudget
from services.kit.log_memory import MemoryLog
from services.kit.rules import Call
from tests.kit.running_runner import running_runner
from tests.kit.test_rounds import RULES, Broken, Many, Number, call


@pytest.fixture
def small(monkeypatch):
    """Room for some forty events, and for one more in six seconds."""
    monkeypatch.setattr(log_budget, "BURST_BYTES", 40 * (OVERHEAD_BYTES + 100))
    monkeypatch.setattr(log_budget, "BYTES_PER_S", 100)


def test_what_was_added_beyond_the_limit_is_waited_for(small):
    budget = LogBudget()
    budget.check("ann", 0.0)
    budget.charge("ann", log_budget.BURST_BYTES + 1000, 0.0)
    with pytest.raises(Refused, match=r"'ann' has added more than .* are taken in 11 s") as refused:
        budget.check("ann", 0.0)
    assert refused.value.problem.retry_after_s == 11
    budget.check("ben", 0.0)
    budget.check("ann", 11.0)


@pytest.mark.parametrize("large", [True, False], ids=["one command of many events", "many commands"])
def test_a_person_who_changes_things_without_end_fills_no_log(small, large):
    """Before, one person stored a megabyte of notes again and again, and filled everybody's disk."""
    now = [1000.0]

    async def work():
        log = MemoryLog()
        async with running_runner(log, RULES, clock=lambda: now[0]) as runner:
            if large:
                await runner.command(Many(100), call(0))
            refused = 0
            for number in range(1, 200):
                try:
                    await runner.command(Number(user="ann"), call(number))
                except Refused:
                    refused += 1
            stored = sum("progressed" in message.subject for message in log.streams[subjects.CONTROL])
            assert refused == 199 if large else refused > 100
            assert stored == 100 if large else 20 < stored < 100
            # Others go on, and so do the commands of services, which have no user, and of her own scripts.
            await runner.command(Number(user="ben"), call(300))
            await runner.command(Number(user=""), call(301))
            await runner.command(Number(user="ann"), Call("c302", 0.0, script="7.1"))
            now[0] += 600.0
            await runner.command(Number(user="ann"), call(303))

    asyncio.run(work())


def test_what_stores_nothing_costs_nothing(small):
    async def work():
        async with running_runner(MemoryLog(), RULES) as runner:
            for number in range(200):
                with pytest.raises(Refused, match="nobody thought of that"):
                    await runner.command(Broken(), call(number))
            await runner.command(Number(), call(201))

    asyncio.run(work())


def test_a_script_that_changes_things_without_end_keeps_its_owner_from_nothing(small):
    """Above all not from killing it."""

    async def work():
        async with running_runner(MemoryLog(), RULES) as runner:
            await runner.command(Many(100), Call("c0", 0.0, script="7.1"))
            with pytest.raises(Refused, match=r"'7\.1' has added"):
                await runner.command(Number(), Call("c1", 0.0, script="7.1"))
            await runner.command(Number(), call(2))

    asyncio.run(work())
