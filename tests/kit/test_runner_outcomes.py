"""Decisions about which the log did not answer, and commands that were given up."""

import asyncio

import pytest

from det_contracts import subjects
from det_contracts.problems import Refused
from services.kit import decider
from services.kit.log import OutcomeUnknown
from services.kit.log_memory import MemoryLog
from services.kit.roots import PageFault
from services.kit.rules import Call
from services.kit.runner import Runner
from services.kit.saver import NullSaver
from tests.fixtures.waiting import until
from tests.kit.test_runner import RULES, Account, Bump, answered, ask, decided, running


class Unsure(MemoryLog):
    """Loses every second answer, sometimes after storing the batch."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    async def append_batch(self, drafts, *, fence):
        self.calls += 1
        if self.calls % 4 == 1:
            raise OutcomeUnknown("lost on the way there")
        position = await super().append_batch(drafts, fence=fence)
        if self.calls % 4 == 3:
            raise OutcomeUnknown("lost on the way back")
        return position


def test_unknown_outcomes_lead_to_one_effect():
    async def work():
        log = Unsure()
        async with running(log) as runner:
            for n in range(20):
                await log.append(ask(1, tag=n))
                await until(lambda n=n: answered(runner) == n + 1)
        assert len(decided(log)) == 20
        assert log.calls > 25

    asyncio.run(work())


def test_a_command_of_unknown_outcome_takes_effect_once():
    async def work():
        log = Unsure()
        async with running(log) as runner:
            for n in range(12):
                position, value = await runner.command(Bump(1), Call(f"c{n}", 0.0))
                assert (value, position <= len(log.streams[subjects.CONTROL])) == (float(n), True)
                await until(lambda n=n: answered(runner) == n + 1)
        assert log.calls > 24

    asyncio.run(work())


class Late(MemoryLog):
    """Stores the first batch only when the second is sent, which then comes too late."""

    def __init__(self):
        super().__init__()
        self.on_its_way = None

    async def append_batch(self, drafts, *, fence):
        if self.on_its_way is None:
            self.on_its_way = drafts
            raise OutcomeUnknown("no answer yet")
        if self.on_its_way:
            late, self.on_its_way = self.on_its_way, ()
            await super().append_batch(late, fence=fence)
        return await super().append_batch(drafts, fence=fence)


def test_a_command_that_was_stored_late_takes_effect_once():
    async def work():
        log = Late()
        async with running(log) as runner:
            _, value = await runner.command(Bump(1), Call("c", 0.0), within_s=60)
            assert value == 0.0
            await until(lambda: answered(runner) == 1)
        assert len(decided(log)) == 1

    asyncio.run(work())


def test_an_abandoned_command_takes_no_effect_later():
    async def work():
        log, leads = MemoryLog(), False
        async with running(log, is_leader=lambda: leads) as runner:
            with pytest.raises(Refused, match="could not decide within"):
                await runner.command(Bump(1), Call("late", 0.0), within_s=0.02)
            leads = True
            runner.on_leadership_change()
            assert (await runner.command(Bump(2), Call("now", 0.0)))[1] == 0.0
            await until(lambda: answered(runner, 2) == 1)
        assert 1 not in runner.state.accounts

    asyncio.run(work())


class Held(MemoryLog):
    """Does not say where it ends, once it is held."""

    is_held = False

    def __init__(self):
        super().__init__()
        self.append_began = asyncio.Event()

    async def end(self, stream, *, after, subjects=()):
        if self.is_held:
            self.append_began.set()
            await asyncio.Event().wait()
        return await super().end(stream, after=after, subjects=subjects)


def test_a_refusal_that_was_being_checked_is_answered_when_the_state_is_loaded_anew():
    async def work():
        log = Held()
        async with running(log) as runner:
            log.is_held = True
            command = asyncio.create_task(runner.command(Bump(-1), Call("c", 0.0)))
            await log.append_began.wait()
            log.is_held = False
            runner._on_fault(PageFault("a test wants it"))
            with pytest.raises(Refused, match="a test wants it"):
                await asyncio.wait_for(command, 60)

    asyncio.run(work())


def test_who_only_follows_does_not_remember_every_record_that_ever_was(monkeypatch):
    monkeypatch.setattr(decider, "MAX_FORGOTTEN_LATE", 100)
    runner = Runner(RULES, MemoryLog(), NullSaver(RULES.state), is_leader=lambda: False)
    accounts, following = runner.decider._state.accounts, runner.decider
    for id in range(12_000):
        accounts[id] = Account()
        following.record_changes({("accounts", id): f"made {id}"})
        if id % 1000:
            del accounts[id]
            following.record_changes({("accounts", id): f"deleted {id}"})
    assert {("accounts", id): f"made {id}" for id in accounts}.items() <= following.unreacted.items()
    assert len(following.unreacted) <= 3 * len(accounts) + 100
