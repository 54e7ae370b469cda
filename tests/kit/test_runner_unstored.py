"""Commands rest on all that was in the log when they arrived, above all those that store nothing."""

import asyncio
from contextlib import asynccontextmanager

import msgspec
import pytest

from det_contracts.events import trial
from det_contracts.problems import Refused, not_found
from services.kit.log_memory import MemoryLog
from services.kit.rules import Call, Result, Rules
from tests.fixtures.waiting import until
from tests.kit.test_runner import Bump, answered, ask, bump, evolve, react, running
from tests.kit.test_runner import State as Accounts


class Look(msgspec.Struct, frozen=True, tag="look"):
    """Stores nothing; is refused unless the account is there."""

    trial_id: int
    user: str = "eve"


def look(state, command, call):
    if command.trial_id not in state.accounts:
        raise not_found("account", command.trial_id)
    return Result(value=state.accounts[command.trial_id].requested)


class Take(Look, frozen=True, tag="take"):
    """As `Look`, and stores something if it is not refused."""


def take(state, command, call):
    return Result([trial.Progressed(command.trial_id, 1, 1.0)], look(state, command, call).value)


COMMANDS = {Bump: bump, Look: look, Take: take}
RULES = Rules(owner="toy", state=Accounts, evolve=evolve, react=react, commands=COMMANDS)


class Behind(MemoryLog):
    """Delivers nothing of what is stored while it does not keep up."""

    def __init__(self):
        super().__init__()
        self.keeps_up = asyncio.Event()
        self.keeps_up.set()

    @asynccontextmanager
    async def read(self, stream, *, after, subjects=()):
        async with super().read(stream, after=after, subjects=subjects) as feed:
            yield Held(feed, self.keeps_up)


class Held:
    def __init__(self, feed, keeps_up):
        self._feed, self._keeps_up = feed, keeps_up

    async def batch(self):
        batch = await self._feed.batch()
        await self._keeps_up.wait()
        return batch


def call(id):
    return Call(id, 0.0)


@pytest.mark.parametrize("command", [Look(1), Look(2), Take(1), Take(2)])
def test_a_command_is_decided_after_what_was_in_the_log(command):
    async def work():
        log = Behind()
        await log.append(ask(2))
        async with running(log, RULES) as runner:
            await until(lambda: answered(runner, 2) == 1)
            log.keeps_up.clear()
            id = command.trial_id
            end = await log.append(ask(id, 5.0))
            deciding = asyncio.create_task(runner.command(command, call("c")))
            for _ in range(20):
                await asyncio.sleep(0)
            assert not deciding.done()
            log.keeps_up.set()
            position, value = await asyncio.wait_for(deciding, 60)
            assert (position >= end, value) == (True, 5.0 if id == 1 else 6.0)

    asyncio.run(work())


class Crowded(MemoryLog):
    """Stores a fact of somebody else just before each batch, and each time it is asked where it ends."""

    def __init__(self):
        super().__init__()
        self.facts = self.end_calls = 0

    async def _store_fact(self):
        self.facts += 1
        await self.append(ask(100 + self.facts))

    async def append_batch(self, drafts, *, fence):
        await self._store_fact()
        return await super().append_batch(drafts, fence=fence)

    async def end(self, stream, *, after, subjects=()):
        self.end_calls += 1
        await self._store_fact()
        return await super().end(stream, after=after, subjects=subjects)


def test_what_is_decided_beside_a_batch_rests_on_what_was_stored_before_it():
    async def work():
        log = Crowded()
        async with running(log, RULES) as runner:
            # Not yet there when both are decided, and there before the batch of the first is stored.
            id = 100 + log.facts + 1
            _, (_, value) = await asyncio.gather(
                runner.command(Bump(5), call("b")), runner.command(Look(id), call("l"))
            )
            assert value == 1.0

    asyncio.run(work())


def test_a_log_that_never_stops_growing_is_asked_once_per_command():
    async def work():
        log = Crowded()
        async with running(log, RULES) as runner:
            before = log.end_calls
            for number in range(10):
                with pytest.raises(Refused, match="777"):
                    await asyncio.wait_for(runner.command(Look(777), call(f"c{number}")), 60)
            assert log.end_calls - before == 10

    asyncio.run(work())


def test_what_stores_nothing_and_is_asked_for_without_end_holds_up_nobody():
    async def work():
        log = Crowded()
        async with running(log, RULES) as runner:
            done = asyncio.Event()

            async def ask_on(number):
                while not done.is_set():
                    with pytest.raises(Refused):
                        await runner.command(Look(777, user=f"u{number}"), call("c"))

            busy = [asyncio.create_task(ask_on(number)) for number in range(5)]
            for number in range(10):
                await asyncio.wait_for(runner.command(Bump(1), call(f"b{number}")), 60)
                await log.append(ask(2, tag=number))
            await until(lambda: answered(runner, 2) == answered(runner) == 10)
            done.set()
            await asyncio.gather(*busy)

    asyncio.run(work())
