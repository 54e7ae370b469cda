"""Rounds: many commands at once, in turn with timers and reactions; what fails stops nobody else."""

import asyncio
import itertools
from dataclasses import dataclass, field, replace

import msgspec
import pytest

from det_contracts import codec, subjects
from det_contracts.events import Decision, metrics, scheduler, trial
from det_contracts.limits import EVENT_BYTES
from det_contracts.problems import Refused, invalid
from services.kit.command_queue import CommandQueue, Pending
from services.kit.log import Draft
from services.kit.log_memory import MemoryLog
from services.kit.rules import Call, Result, Rules, TimerKind
from tests.fixtures.waiting import until
from tests.kit.running_runner import running_runner

POISONED, UNREACTABLE, HUGE = 666, 667, 668
FAULTY = frozenset({UNREACTABLE})
"""Rules fail for these."""


class Account(msgspec.Struct, frozen=True):
    requested: int = 0
    answered: int = 0
    passed: int = 0


@dataclass
class State:
    accounts: dict[int, Account] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)


def evolve(state, recorded):
    event = recorded.event
    match event:
        case trial.Progressed(trial_id=id, units=units):
            if units < 0:
                raise ValueError("units cannot be negative")
            account = state.accounts.get(id, Account())
            state.accounts[id] = msgspec.structs.replace(account, requested=account.requested + 1)
        case metrics.Settled(trial_id=id):
            account = state.accounts[id]
            state.accounts[id] = msgspec.structs.replace(account, answered=account.answered + 1)
        case scheduler.DeadlinePassed(allocation_id=id):
            account = state.accounts.get(int(id), Account())
            state.accounts[int(id)] = msgspec.structs.replace(account, passed=1)
        case trial.StatusSet(status=name):
            state.names[name] = 1
            return [("names", name)]
        case _:
            return ()
    return [("accounts", id)]


def react(state, key):
    account = state.accounts.get(key[1], Account())
    if key[1] in FAULTY:
        raise ZeroDivisionError("nobody thought of this")
    reason = "x" * EVENT_BYTES if key[1] == HUGE else "asked"
    return [metrics.Settled(trial_id=key[1], reason=reason)] * (account.requested - account.answered)


class Number(msgspec.Struct, frozen=True):
    """Takes the next free number: two may not get the same."""

    user: str = "ann"


class Many(msgspec.Struct, frozen=True):
    """Opens so many accounts, those that are not there."""

    most: int
    user: str = "ann"


class Raw(msgspec.Struct, frozen=True):
    event: object
    user: str = "ann"


class Broken(msgspec.Struct, frozen=True):
    user: str = "ann"


class Endless(msgspec.Struct, frozen=True):
    user: str = "ann"


class OnlyFirst(msgspec.Struct, frozen=True):
    user: str = "ann"


def number(state, command, call):
    id = max(state.accounts, default=0) + 1
    return Result([trial.Progressed(id, 1, 1.0)], id)


def many(state, command, call):
    missing = [id for id in range(10_000, 10_000 + command.most) if id not in state.accounts]
    return Result([trial.Progressed(id, 1, 1.0) for id in missing], command.most)


def broken(state, command, call):
    raise KeyError("nobody thought of that")


def only_first(state, command, call):
    if state.accounts:
        raise invalid("somebody was here before")
    return number(state, command, call)


COMMANDS = {
    Number: number,
    Many: many,
    Broken: broken,
    OnlyFirst: only_first,
    Raw: lambda state, command, call: Result([command.event]),
    Endless: lambda state, command, call: Result([trial.Progressed(1, 1, 1.0)] * 1500),
}
RULES = Rules(owner="toy", state=State, evolve=evolve, react=react, commands=COMMANDS)
AHEAD = replace(RULES, may_react_ahead=lambda *_: True)


def draft(event, id):
    return Draft(codec.subject_of(event), codec.encode(event, id=id, actor="t", at=0.0), id)


def running(log, rules=RULES, **options):
    return running_runner(log, rules, **options)


def events(log):
    return [codec.decode(m.body, m.position).event for m in log.streams[subjects.CONTROL]]


def answered(runner, id):
    return runner.state.accounts.get(id, Account()).answered


def run(work):
    asyncio.run(work())


def call(n=0):
    return Call(f"c{n}", 0.0)


def test_many_commands_share_a_round_and_see_each_other():
    async def work():
        log = MemoryLog()
        async with running(log) as runner:
            commands = [runner.command(Number(user=f"u{n % 7}"), call(n)) for n in range(400)]
            answers = await asyncio.gather(*commands)
            assert sorted(value for _, value in answers) == list(range(1, 401))
            stored_events = events(log)
            # An answer's position is that of the event that it speaks of.
            assert all(stored_events[position - 1].trial_id == value for position, value in answers)
        before = next(at for at, event in enumerate(stored_events) if isinstance(event, metrics.Settled))
        assert sum(isinstance(event, Decision) for event in stored_events[:before]) < 10

    run(work)


def test_a_client_that_never_stops_keeps_no_reaction_and_no_timer_waiting():
    """Fifty that ask again as soon as they are answered: what is due beside them takes a few rounds."""

    async def work():
        log, now = MemoryLog(), 0.0

        def waiting(state):
            return () if state.accounts.get(9000, Account()).passed else [(100.0, 9000)]

        timers = {"accounts": TimerKind(waiting, lambda _, at, id: scheduler.DeadlinePassed(str(id), at))}
        rules = replace(RULES, timers=timers)
        async with running(log, rules, clock=lambda: now) as runner:

            async def greedy(name):
                while True:
                    await runner.command(Number(user=name), call())

            asking = [asyncio.create_task(greedy(f"u{n % 5}")) for n in range(50)]
            await until(lambda: len(runner.state.accounts) > 200)
            now = 150.0
            position = await log.append(draft(trial.Progressed(5000, 1, 1.0), "stated"))
            await until(lambda: answered(runner, 5000) == 1)
            await until(lambda: runner.state.accounts.get(9000, Account()).passed)
            for task in asking:
                task.cancel()
            await asyncio.wait(asking)
        stored_events = events(log)
        settled = next(
            n for n, e in enumerate(stored_events) if getattr(e, "trial_id", 0) == 5000 and n >= position
        )
        passed = next(n for n, e in enumerate(stored_events) if isinstance(e, scheduler.DeadlinePassed))
        for at in (settled, passed):
            assert sum(isinstance(event, Decision) for event in stored_events[position:at]) <= 12

    run(work)


def test_records_that_call_for_more_than_a_round_take_turns():
    """Two trials have stated more than many rounds can answer; a third states something once."""

    async def work():
        log = MemoryLog()
        for number in range(6001):
            id = 3 if number == 6000 else 1 + number % 2
            await log.append(draft(trial.Progressed(id, 1, 1.0), f"stated {number}"))
        async with running(log) as runner:
            await until(lambda: [answered(runner, id) for id in (1, 2, 3)] == [3000, 3000, 1])
        stored_events = events(log)
        settled = [
            at for at, e in enumerate(stored_events) if isinstance(e, metrics.Settled) and e.trial_id == 3
        ]
        assert sum(isinstance(event, Decision) for event in stored_events[: settled[0]]) <= 3

    run(work)


def test_a_command_that_fails_is_its_own_misfortune():
    async def work():
        log = MemoryLog()
        async with running(log) as runner:
            kinds = [Number(), Broken(), Number(), Raw(trial.Progressed(POISONED, 1, -1.0)), Number()]
            commands = [runner.command(kind, call(n)) for n, kind in enumerate(kinds)]
            answers = await asyncio.gather(*commands, return_exceptions=True)
            assert [answer[1] for answer in answers[::2]] == [1, 2, 3]
            assert [answer.problem.code for answer in answers[1::2]] == ["internal", "internal"]
            assert "call c1" in str(answers[1])
            assert "nobody thought of that" in str(answers[1])
        assert POISONED not in runner.state.accounts

    run(work)


def test_a_refusal_based_on_a_round_is_sent_once_the_round_is_stored():
    async def work():
        log = MemoryLog()
        async with running(log) as runner:
            first, second = await asyncio.gather(
                runner.command(OnlyFirst(), call(1)),
                runner.command(OnlyFirst(), call(2)),
                return_exceptions=True,
            )
            assert first[1] == 1
            assert "somebody was here before" in str(second)

    run(work)


def test_a_command_of_thousands_of_events_is_cut_into_rounds():
    async def work():
        log = MemoryLog()
        async with running(log) as runner:
            position, value = await runner.command(Many(2500), call())
            assert value == 2500
            await until(lambda: sum(a.answered for a in runner.state.accounts.values()) == 2500)
        progressed = [at for at, e in enumerate(events(log), 1) if isinstance(e, trial.Progressed)]
        assert len(progressed) == 2500
        assert position == progressed[-1]

    run(work)


def test_a_command_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr("services.kit.rounds.MAX_ROUNDS_PER_COMMAND", 3)

    async def work():
        async with running(MemoryLog()) as runner:
            with pytest.raises(Refused, match="does not end after 3 rounds"):
                await runner.command(Endless(), call())

    run(work)


@pytest.mark.parametrize(
    "subject", ["control.toy.decision", "control.toy.account.1.asked", "control.trial.1.x"]
)
@pytest.mark.parametrize("body", [b"", b"{", b"\xff\x00", b'{"id":"a"}', b"[" * 200_000, b"7"])
def test_a_message_that_nobody_can_read_stops_nobody(subject, body):
    async def work():
        log = MemoryLog()
        async with running(log) as runner:
            await runner.command(Number(), call(1))
            await log.append(Draft(subject, body, "damaged"))
            assert (await runner.command(Number(), call(2), within_s=60))[1] == 2
            await until(lambda: answered(runner, 2) == 1)
        async with running(log) as again:
            assert (await again.command(Number(), call(3), within_s=60))[1] == 3

    run(work)


def ended(at):
    """The log ends there."""

    async def find_end():
        return at

    return find_end


def test_commands_wait_in_turn_by_person():
    async def work():
        waiting = CommandQueue(limit=8, limit_per_user=5)
        for n in range(5):
            waiting.put(Pending(Number(user="ann"), call(f"a{n}")))
        with pytest.raises(Refused, match="5 of them of 'ann'") as refused:
            waiting.put(Pending(Number(user="ann"), call("a5")))
        assert (refused.value.problem.code, refused.value.problem.retry_after_s) == ("exhausted", 1)
        for n in range(3):
            waiting.put(Pending(Number(user="bob"), call(f"b{n}")))
        with pytest.raises(Refused, match="8 commands wait"):
            waiting.put(Pending(Number(user="eve"), call("e0")))
        await waiting.hold_arrivals(ended(at=7))
        waiting.release(6)
        assert waiting.pop() is None
        waiting.release(7)
        first = [waiting.pop() for _ in range(4)]
        assert [pending.call.id for pending in first] == ["ca0", "cb0", "ca1", "cb1"]
        waiting.put_back(first[2:])
        gone = waiting.pop()
        assert gone.call.id in ("ca1", "cb1")
        waiting.put_back([gone])
        gone.answer.cancel()
        rest = [waiting.pop() for _ in range(5)]
        assert gone not in rest
        assert waiting.pop() is None
        assert len(waiting) == 0

    run(work)


@pytest.mark.parametrize("name", ["a\0b", "x" * 513, "\u6c34" * 4000])
def test_a_name_that_no_database_looks_up_gets_into_no_log(name):
    """Whichever command brings it: in the log it would stop everybody who saves it."""

    async def work():
        log = MemoryLog()
        async with running(log) as runner:
            with pytest.raises(Refused, match="choose a shorter one"):
                await runner.command(Raw(trial.StatusSet(1, 1, name)), Call("1", 0.0))
            await runner.command(Raw(trial.StatusSet(1, 1, "x" * 512)), Call("2", 0.0))
        return [type(event) for event in events(log)]

    assert asyncio.run(work()) == [Decision, trial.StatusSet]


def batches(log):
    """The events of each batch."""
    by_batch = []
    for event in events(log):
        if isinstance(event, Decision):
            by_batch.append([])
        else:
            by_batch[-1].append(event)
    return by_batch


def test_what_a_command_calls_for_is_in_its_batch_and_nowhere_else():
    async def work():
        log = MemoryLog()
        async with running(log, AHEAD, stopwatch=lambda: 0.0) as runner:
            commands = [runner.command(Number(user=f"u{n}"), call(n)) for n in range(3)]
            answers = await asyncio.gather(*commands)
            await runner.command(Number(), call(3))
            await until(lambda: answered(runner, 4) == 1)
        assert answers == [(2, 1), (3, 2), (4, 3)]
        stated = [[(type(event), event.trial_id) for event in batch] for batch in batches(log)]
        request, made = trial.Progressed, metrics.Settled
        assert stated == [
            [*((request, id) for id in (1, 2, 3)), *((made, id) for id in (1, 2, 3))],
            [(request, 4), (made, 4)],
        ]
        recorded = [codec.decode(m.body, m.position) for m in log.streams[subjects.CONTROL]]
        assert [event.cause for event in recorded[4:7]] == [event.id for event in recorded[1:4]]
        assert {event.actor for event in recorded[4:7]} == {"toy"}

    run(work)


def test_what_does_not_fit_into_the_batch_of_a_command_follows():
    async def work():
        log = MemoryLog()
        async with running(log, AHEAD, stopwatch=lambda: 0.0) as runner:
            await runner.command(Many(600), call())
            await runner.command(Many(2500), call())
            await until(lambda: sum(a.answered for a in runner.state.accounts.values()) == 2500)
        sizes = [len(batch) for batch in batches(log)]
        assert sizes[0] == 999
        assert max(sizes) == 999
        assert all(account == Account(1, 1) for account in runner.state.accounts.values())

    run(work)


@pytest.mark.parametrize("id", [UNREACTABLE, HUGE])
def test_a_command_takes_effect_whatever_becomes_of_what_it_calls_for(id):
    async def work():
        log = MemoryLog()
        async with running(log, AHEAD, stopwatch=lambda: 0.0) as runner:
            assert await runner.command(Raw(trial.Progressed(id, 1, 1.0)), call(1)) == (2, None)
            await until(lambda: list(runner.decider.parked) == [("accounts", id)])
            await runner.command(Raw(trial.Progressed(5, 1, 1.0)), call(2))
            await until(lambda: answered(runner, 5) == 1)
        assert [len(batch) for batch in batches(log)] == [1, 2]

    run(work)


def test_commands_that_took_their_time_are_stored_before_what_they_call_for():
    async def work():
        log, ticks = MemoryLog(), itertools.count()
        async with running(log, AHEAD, stopwatch=lambda: float(next(ticks))) as runner:
            await runner.command(Number(), call())
            await until(lambda: answered(runner, 1) == 1)
        assert [len(batch) for batch in batches(log)] == [1, 1]

    run(work)
