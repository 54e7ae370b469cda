"""The runner: fold, react, append; over the in-memory log, with a service of two rules."""

import asyncio
import contextlib
import random
from dataclasses import dataclass, field

import msgspec
import pytest

from det_contracts import codec, subjects
from det_contracts.events import Decision, metrics, scheduler, trial
from det_contracts.events.archive import SegmentSealed
from det_contracts.problems import Refused, invalid
from services.kit.log import Draft, FenceLost
from services.kit.log_memory import MemoryLog
from services.kit.rules import Call, Result, Rules, TimerKind
from services.kit.runner import Runner
from services.kit.saver import NullSaver
from tests.fixtures.waiting import until
from tests.kit.running_runner import running_runner


class Account(msgspec.Struct, frozen=True):
    """Counts what was reported, and what was answered."""

    requested: float = 0.0
    answered: int = 0
    passed: int = 0


@dataclass
class State:
    accounts: dict[int, Account] = field(default_factory=dict)


def evolve(state, recorded):
    event = recorded.event
    id = getattr(event, "trial_id", None) or int(getattr(event, "allocation_id", 0) or 0)
    account = state.accounts.get(id, Account())
    match event:
        case trial.Progressed(units=units):
            if units < 0:
                raise ValueError("units cannot be negative")
            state.accounts[id] = msgspec.structs.replace(account, requested=account.requested + units)
        case metrics.Settled():
            state.accounts[id] = msgspec.structs.replace(account, answered=account.answered + 1)
        case scheduler.DeadlinePassed():
            state.accounts[id] = msgspec.structs.replace(account, passed=account.passed + 1)
        case _:
            return ()
    return [("accounts", id)]


def react(state, key):
    account = state.accounts[key[1]]
    open_ = int(account.requested) - account.answered
    return [metrics.Settled(trial_id=key[1], reason="asked")] * open_


class Bump(msgspec.Struct, frozen=True, tag="bump"):
    trial_id: int
    user: str = "ann"


def bump(state, command, call):
    if command.trial_id < 0:
        raise invalid("trial_id: must not be negative")
    return Result(
        [trial.Progressed(command.trial_id, 1, 1.0)],
        state.accounts.get(command.trial_id, Account()).requested,
    )


def waiting(state):
    return sorted((100.0 * (a.passed + 1), id) for id, a in state.accounts.items() if a.passed < 2)


TIMERS = {"accounts": TimerKind(waiting, lambda _, at, id: scheduler.DeadlinePassed(str(id), at))}


RULES = Rules(owner="toy", state=State, evolve=evolve, react=react, commands={Bump: bump})
TIMED = Rules(owner="toy", state=State, evolve=evolve, react=react, timers=TIMERS)


def draft(event, id):
    return Draft(codec.subject_of(event), codec.encode(event, id=id, actor="t", at=0.0), id)


def ask(id, units=1.0, tag=""):
    return draft(trial.Progressed(id, 1, units), f"ask-{id}-{units}-{tag}")


def running(log, rules=RULES, **options):
    return running_runner(log, rules, **options)


def decided(log):
    events = [codec.decode(m.body, m.position) for m in log.streams[subjects.CONTROL]]
    return [r for r in events if isinstance(r.event, metrics.Settled)]


def answered(runner, id=1):
    return runner.state.accounts.get(id, Account()).answered


def test_what_is_stated_is_answered_through_the_log():
    async def work():
        log = MemoryLog()
        await log.append(ask(1, 3.0))
        async with running(log) as runner:
            await until(lambda: answered(runner) == 3)
            await log.append(ask(2))
            await until(lambda: answered(runner, 2) == 1)
        assert len(decided(log)) == 4
        assert decided(log)[0].cause == "ask-1-3.0-"
        kinds = [type(codec.decode(m.body, 1).event) for m in log.streams[subjects.CONTROL]]
        assert kinds.count(Decision) == 2

    asyncio.run(work())


class Swallowing(MemoryLog):
    """Its answer comes together with the end of who asked, as in a request of the broker's client."""

    def __init__(self):
        super().__init__()
        self.appended = asyncio.Event()

    async def append_batch(self, drafts, *, fence):
        position = await super().append_batch(drafts, fence=fence)
        self.appended.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return position


def test_who_ends_it_while_a_decision_is_answered_does_end_it():
    async def work():
        log = Swallowing()
        runner = Runner(RULES, log, NullSaver(State))
        task = asyncio.create_task(runner.run())
        await log.append(ask(1))
        await asyncio.wait_for(log.appended.wait(), 60)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=60)
        for left in asyncio.all_tasks() - {asyncio.current_task()}:
            left.cancel()
        assert done

    asyncio.run(work())


class Hanging(MemoryLog):
    """Takes no decision before it is let, and says nothing."""

    def __init__(self):
        super().__init__()
        self.let, self.attempts = asyncio.Event(), 0

    async def append_batch(self, drafts, *, fence):
        self.attempts += 1
        await self.let.wait()
        return await super().append_batch(drafts, fence=fence)


def test_what_is_about_to_be_decided_and_comes_to_no_end_can_be_seen():
    async def work():
        log = Hanging()
        async with running(log) as runner:
            await until(lambda: not runner.decider.decision_progress()[0])
            await log.append(ask(1))
            await until(lambda: log.attempts)
            before = runner.decider.decision_progress()
            assert before[0]
            log.let.set()
            await until(lambda: answered(runner) == 1 and not runner.decider.decision_progress()[0])
            assert runner.decider.decision_progress()[1] > before[1]

    asyncio.run(work())


class Told(NullSaver):
    """Notes the keys that it is told of."""

    def __init__(self):
        super().__init__(State)
        self.keys = []

    async def changed(self, state, keys, events, positions, size=0):
        self.keys += keys


def test_changes_are_published_in_log_order():
    """As one seed of the simulation must: whatever the order of sets is in this process."""
    ids = random.Random(1).sample(range(1, 400), 100)

    async def story():
        log, saver = MemoryLog(), Told()
        for id in ids:
            await log.append(ask(id))
            await log.append(ask(id, tag="again"))
        async with running(log, saver=saver, is_leader=lambda: False):
            await until(lambda: len(saver.keys) >= len(ids))
        assert saver.keys == [("accounts", id) for id in ids]

    asyncio.run(story())


def test_a_restart_decides_nothing_again():
    async def work():
        log = MemoryLog()
        await log.append(ask(1, 2.0))
        for _ in range(3):
            async with running(log) as runner:
                await until(lambda runner=runner: answered(runner) == 2)
        assert len(decided(log)) == 2

    asyncio.run(work())


def test_commands_are_ruled_on_one_after_another():
    async def work():
        log = MemoryLog()
        async with running(log) as runner:
            calls = [runner.command(Bump(5), Call(f"c{n}", 0.0)) for n in range(10)]
            values = [value for _, value in await asyncio.gather(*calls)]
            assert values == [float(n) for n in range(10)]
            with pytest.raises(Refused, match="trial_id"):
                await runner.command(Bump(-1), Call("bad", 0.0))
            await until(lambda: answered(runner, 5) == 10)
        assert len(decided(log)) == 10

    asyncio.run(work())


def test_two_that_both_believe_to_lead_decide_everything_once():
    async def work():
        log = MemoryLog()
        async with running(log) as first, running(log) as second:
            for n in range(40):
                await log.append(ask(n % 5 + 1, tag=n))
                if n % 7 == 0:
                    await asyncio.sleep(0)
            for id in range(1, 6):
                await until(lambda id=id: answered(first, id) == answered(second, id) == 8)
        assert len(decided(log)) == 40

    asyncio.run(work())


def test_somebody_elses_decision_is_read_before_the_next_one():
    async def work():
        log = MemoryLog()
        async with running(log) as runner:
            foreign = codec.encode(Decision("toy", 0, 0, "other"), id="f", actor="toy", at=0.0)
            await log.append(Draft(subjects.decision("toy"), foreign, "f"))
            await log.append(ask(1))
            await until(lambda: answered(runner) == 1)
        with pytest.raises(FenceLost):
            await log.append_batch([Draft(subjects.decision("toy"), b"{}", "g")], fence=_fence_position(1))

    asyncio.run(work())


def _fence_position(last):
    from services.kit.log import Fence

    return Fence(subjects.decision("toy"), last)


def test_due_times_become_facts_once_each_also_over_a_restart():
    async def work():
        log, now = MemoryLog(), 0.0
        await log.append(ask(1))
        clock = lambda: now  # noqa: E731
        async with running(log, TIMED, clock=clock) as runner:
            await until(lambda: answered(runner) == 1)
            assert runner.state.accounts[1].passed == 0
        now = 150.0
        async with running(log, TIMED, clock=clock) as runner:
            await until(lambda: runner.state.accounts[1].passed == 1)
        now = 1000.0
        async with running(log, TIMED, clock=clock) as runner:
            await until(lambda: runner.state.accounts[1].passed == 2)
            await runner.wait_for_position((await log.bounds(subjects.CONTROL))[1])
        facts = [codec.decode(m.body, 1).event for m in log.streams[subjects.CONTROL]]
        assert [f.due_at for f in facts if isinstance(f, scheduler.DeadlinePassed)] == [100.0, 200.0]

    asyncio.run(work())


def test_nothing_is_late_before_all_that_was_said_is_read():
    async def work():
        log = MemoryLog()
        await log.append(Draft(subjects.witness_of_trial(1), b"{}", "said"))
        async with running(log, TIMED, clock=lambda: 1000.0) as runner:
            # Many turns, in each of which the due times could be looked at.
            for number in range(1, 21):
                await log.append(ask(1, tag=str(number)))
                await until(lambda number=number: answered(runner) == number)
            assert runner.state.accounts[1].passed == 0
            read = Decision(owner=subjects.INTAKE, seen=0, count=0, replica="r", to=1)
            body = codec.encode(read, id="d", actor=subjects.INTAKE, at=0.0)
            await log.append(Draft(subjects.decision(subjects.INTAKE), body, "d"))
            await until(lambda: runner.state.accounts[1].passed == 2)

    asyncio.run(work())


def test_only_who_leads_decides():
    async def work():
        log, leads = MemoryLog(), False
        await log.append(ask(1))
        async with running(log, is_leader=lambda: leads) as runner:
            await runner.wait_for_position(1)
            assert not decided(log)
            leads = True
            runner.on_leadership_change()
            await until(lambda: answered(runner) == 1)

    asyncio.run(work())


def test_who_follows_looks_for_no_decision_after_what_it_folds():
    async def work():
        log, leads = MemoryLog(), False
        async with running(log, is_leader=lambda: leads) as runner:
            await until(lambda: not runner.decider.decision_progress()[0])
            _, looked = runner.decider.decision_progress()
            for number in range(1, 20):
                await runner.wait_for_position(await log.append(ask(1, tag=number)))
            await asyncio.sleep(0)
            assert runner.decider.decision_progress() == (False, looked)
            # What it folded meanwhile is decided once it leads, told of that or not.
            leads = True
            await runner.wait_for_position(await log.append(ask(2)))
            await until(lambda: answered(runner) == 19)

    asyncio.run(work())


def test_whoever_decided_nothing_behind_what_is_archived_makes_an_empty_decision():
    """Else the log could never be cut behind a quiet owner: its newest decision has to stay."""

    async def work():
        log = MemoryLog()
        await log.append(ask(1))
        async with running(log) as runner:
            await until(lambda: answered(runner) == 1)
            through = len(log.streams[subjects.CONTROL])
            for _ in range(2):
                sealed = SegmentSealed(stream="CONTROL", first=1, last=through, header="x", size=1)
                await log.append(draft(sealed, f"sealed-{len(log.streams[subjects.CONTROL])}"))
                end = len(log.streams[subjects.CONTROL])
                await until(lambda end=end: runner.positions[subjects.CONTROL] >= end)
            await until(lambda: runner.decider.fence_position > through)
            await log.forget(subjects.CONTROL, through)
            await log.append(ask(2))
            await until(lambda: answered(runner, 2) == 1)
        kinds = [type(codec.decode(m.body, 1).event) for m in log.streams[subjects.CONTROL]]
        assert kinds.count(Decision) == 3, "one of them empty, and no more than one"

    asyncio.run(work())
