"""A due time that cannot be looked at is parked and told; everything else goes on, and nothing ends."""

import asyncio
from dataclasses import dataclass, field

import msgspec
import pytest

from det_contracts import codec, subjects
from det_contracts.events import gateway, metrics, scheduler, trial
from det_contracts.limits import EVENT_BYTES
from services.kit.log import Draft
from services.kit.log_memory import MemoryLog
from services.kit.rules import Rules, TimerKind
from services.kit.timers import ALL
from tests.fixtures.waiting import until
from tests.kit.running_runner import running_runner

BROKEN, HUGE = 7, 8


class Account(msgspec.Struct, frozen=True):
    requested: int = 0
    passed: bool = False


@dataclass
class State:
    accounts: dict[int, Account] = field(default_factory=dict)
    others: dict[int, Account] = field(default_factory=dict)


FAULTS = set()


@pytest.fixture(autouse=True)
def faults():
    FAULTS.clear()
    yield FAULTS
    FAULTS.clear()


def evolve(state, recorded):
    match recorded.event:
        case trial.Progressed(trial_id=id):
            account = state.accounts.get(id, Account())
            state.accounts[id] = msgspec.structs.replace(account, requested=account.requested + 1)
            return [("accounts", id)]
        case scheduler.DeadlinePassed(allocation_id=id):
            state.accounts[int(id)] = msgspec.structs.replace(state.accounts[int(id)], passed=True)
            return [("accounts", int(id))]
        case metrics.Settled(trial_id=id):
            state.others[id] = Account(passed=True)
            return [("others", id)]
    return ()


def of_accounts(state):
    return [(100.0, id) for id in sorted(state.accounts) if not state.accounts[id].passed]


def account_passed(state, at, id):
    if id in FAULTS:
        raise KeyError(f"nobody thought of {id}")
    if id == HUGE:
        return metrics.Settled(trial_id=id, reason="x" * EVENT_BYTES)
    return scheduler.DeadlinePassed(str(id), at)


def of_others(state):
    if "index" in FAULTS:
        raise RuntimeError("an index is wrong")
    return [] if 1 in state.others else [(90.0, 1)]


RULES = Rules(
    owner="toy",
    state=State,
    evolve=evolve,
    react=lambda state, key: (),
    timers={
        "others": TimerKind(of_others, lambda _, at, id: metrics.Settled(trial_id=id, reason="time")),
        "accounts": TimerKind(of_accounts, account_passed),
    },
)


def draft(event, id):
    return Draft(codec.subject_of(event), codec.encode(event, id=id, actor="test", at=0.0), id)


async def say(log, *ids):
    for id in ids:
        number = len(log.streams[subjects.CONTROL])
        await log.append(draft(trial.Progressed(id, 1, 1.0), f"said-{number}"))


def passed(runner, *ids):
    return all(id in runner.state.accounts and runner.state.accounts[id].passed for id in ids)


def running(log):
    return running_runner(log, RULES, clock=lambda: 200.0)


def test_other_timers_fire_and_the_failing_one_is_reported(faults):
    faults.add(BROKEN)

    async def work():
        log = MemoryLog()
        await say(log, 1, BROKEN, HUGE, 9)
        async with running(log) as runner:
            await until(lambda: passed(runner, 1, 9))
            parked_reasons = runner.decider.parked_records()
            assert parked_reasons[f"accounts {BROKEN}"] == "its due time: KeyError('nobody thought of 7')"
            assert "bytes in the log" in parked_reasons[f"accounts {HUGE}"]
            assert set(parked_reasons) == {f"accounts {BROKEN}", f"accounts {HUGE}"}
            # It waits for nothing, instead of asking again and again.
            assert runner.decider._rounds.timers.due(runner.state) is None

    asyncio.run(work())


def test_a_record_that_changes_is_looked_at_again(faults):
    faults.add(BROKEN)

    async def work():
        log = MemoryLog()
        await say(log, BROKEN)
        async with running(log) as runner:
            await until(lambda: runner.decider.parked_records() != {})
            faults.clear()
            await say(log, 1)
            await until(lambda: passed(runner, 1))
            assert not passed(runner, BROKEN)
            await say(log, BROKEN)
            await until(lambda: passed(runner, BROKEN))
            assert runner.decider.parked_records() == {}

    asyncio.run(work())


def test_an_administrator_has_it_looked_at_again(faults):
    faults.update({BROKEN, "index"})

    async def work():
        log = MemoryLog()
        await say(log, BROKEN, 1)
        async with running(log) as runner:
            await until(lambda: passed(runner, 1))
            await until(lambda: len(runner.decider.parked_records()) == 2)
            faults.clear()
            await log.append(draft(gateway.DecisionsRetried(owner="toy", reason="test"), "retry"))
            await until(lambda: passed(runner, BROKEN) and 1 in runner.state.others)
            assert runner.decider.parked_records() == {}

    asyncio.run(work())


def test_times_that_cannot_even_be_listed_stop_no_other_kind(faults):
    faults.add("index")

    async def work():
        log = MemoryLog()
        await say(log, 1, 2)
        async with running(log) as runner:
            await until(lambda: passed(runner, 1, 2))
            assert runner.decider.parked_records() == {
                f"others {ALL}": "its due time: RuntimeError('an index is wrong')"
            }
            assert runner.state.others == {}

    asyncio.run(work())
