"""An event that cannot be folded: the service stands still before it until somebody decides, and says so."""

import asyncio
import contextlib
from dataclasses import dataclass, field, replace

import msgspec
import pytest

from det_contracts import codec, subjects
from det_contracts.events import Decision, gateway, metrics, trial
from det_contracts.problems import Refused
from services.kit.database import METADATA, Database
from services.kit.log import Draft
from services.kit.log_memory import MemoryLog
from services.kit.portions import portions_of
from services.kit.rules import Call, Result, Rules
from services.kit.runner import Runner
from services.kit.saver import NullSaver
from services.kit.snapshot_store import DatabaseSaver
from services.local.skip import CannotSkip, skip
from services.searcher.app import RULES as SEARCHER
from tests.fixtures.waiting import until


class Account(msgspec.Struct, frozen=True):
    requested: float = 0.0
    answered: int = 0


@dataclass
class State:
    accounts: dict[int, Account] = field(default_factory=dict)


BROKEN = set()
"""Units that the fold cannot process. It notices only after it has changed something."""


def evolve(state, recorded):
    event = recorded.event
    match event:
        case trial.Progressed(trial_id=id, units=units):
            account = state.accounts.get(id, Account())
            state.accounts[id] = msgspec.structs.replace(account, requested=account.requested + units)
            if units in BROKEN:
                raise ValueError(f"nobody thought of {units} units")
            return [("accounts", id)]
        case metrics.Settled(trial_id=id):
            account = state.accounts.get(id, Account())
            state.accounts[id] = msgspec.structs.replace(account, answered=account.answered + 1)
            return [("accounts", id)]
    return ()


def react(state, key):
    account = state.accounts[key[1]]
    return [metrics.Settled(trial_id=key[1], reason="asked")] * (int(account.requested) - account.answered)


class Bump(msgspec.Struct, frozen=True, tag="bump"):
    trial_id: int
    user: str = "ann"


RULES = Rules(
    owner="toy",
    state=State,
    evolve=evolve,
    react=react,
    commands={Bump: lambda state, command, call: Result([trial.Progressed(command.trial_id, 1, 1.0)])},
    answers={},
)


@pytest.fixture(autouse=True)
def broken():
    BROKEN.clear()
    BROKEN.add(3.0)
    yield BROKEN
    BROKEN.clear()


def draft(event, id):
    return Draft(codec.subject_of(event), codec.encode(event, id=id, actor="test", at=0.0), id)


async def say(log, *many):
    """(trial, units) for each."""
    for id, units in many:
        await log.append(draft(trial.Progressed(id, 1, units), f"said-{len(log.streams[subjects.CONTROL])}"))


def skipping(*positions, owner="toy"):
    places = tuple(gateway.SkippedEvent(subjects.CONTROL, position) for position in positions)
    return gateway.EventSkipped(
        owner=owner,
        stream=subjects.CONTROL,
        position=positions[-1],
        subject="",
        error="",
        skipped=places,
        reason="test",
    )


RETRY = gateway.DecisionsRetried(owner="toy", reason="test")


@contextlib.asynccontextmanager
async def running(log, saver=None, rules=RULES, **options):
    runner = Runner(rules, log, saver or NullSaver(rules.state), **options)
    task = asyncio.create_task(runner.run())
    try:
        yield runner
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), task.exception()


async def stands(runner):
    await until(runner.standstill.stands.is_set)


def test_it_stands_before_what_it_cannot_fold_and_says_at_which_event():
    async def work():
        log = MemoryLog()
        await say(log, (1, 1.0), (2, 3.0), (1, 1.0))
        async with running(log) as runner:
            await stands(runner)
            assert runner.positions[subjects.CONTROL] == 1
            # The half that the failed fold had changed is not there.
            assert runner.state.accounts == {1: Account(requested=1.0)}
            failed = runner.standstill.failed
            assert (failed.stream, failed.position, failed.subject) == (
                "CONTROL",
                2,
                "control.trial.2.progressed",
            )
            assert failed.error == "ValueError('nobody thought of 3.0 units')"
            # Nothing is decided on an old state, and who asks is told why.
            assert all(
                type(codec.decode(m.body, 1).event) is trial.Progressed for m in log.streams["CONTROL"]
            )
            with pytest.raises(Refused, match="toy cannot process event 2 of CONTROL, and stands still"):
                await runner.command(Bump(1), Call("c", 0.0), within_s=60)
            with pytest.raises(Refused, match="event 2 of CONTROL"):
                await runner.wait_for_position(3, within_s=60)

    asyncio.run(work())


def test_skipped_it_has_no_effect_and_what_follows_has():
    async def work():
        log = MemoryLog()
        await say(log, (1, 1.0), (2, 3.0), (1, 1.0))
        async with running(log) as runner:
            await stands(runner)
            await log.append(draft(skipping(2, owner="others"), "others"))
            await log.append(draft(skipping(2), "skip"))
            await until(lambda: runner.state.accounts.get(1) == Account(requested=2.0, answered=2))
            assert set(runner.state.accounts) == {1}
            assert runner.standstill.failed is None
            await runner.command(Bump(2), Call("c", 0.0), within_s=60)
            await until(lambda: runner.state.accounts.get(2) == Account(requested=1.0, answered=1))

    asyncio.run(work())


def test_a_rebuild_skips_the_same_events_though_it_could_fold_them_now(broken):
    async def work():
        log = MemoryLog()
        await say(log, (1, 1.0), (2, 3.0), (1, 1.0))
        await log.append(draft(skipping(2), "skip"))
        async with running(log) as runner:
            await until(lambda: runner.state.accounts.get(1) == Account(requested=2.0, answered=2))
            before = dict(runner.state.accounts)
        broken.clear()
        async with running(log) as runner:
            await until(runner.ready.is_set)
            assert runner.state.accounts == before

    asyncio.run(work())


def test_a_retried_event_is_folded_if_the_cause_is_removed_and_else_stops_again(broken):
    async def work():
        log = MemoryLog()
        await say(log, (2, 3.0))
        async with running(log) as runner:
            await stands(runner)
            request_position = len(log.streams[subjects.CONTROL]) + 1
            await log.append(draft(RETRY, "first"))
            await until(
                lambda: (
                    runner.standstill._read_up_to == request_position and runner.standstill.stands.is_set()
                )
            )
            broken.clear()
            await log.append(draft(RETRY, "second"))
            await until(lambda: runner.state.accounts.get(2) == Account(requested=3.0, answered=3))

    asyncio.run(work())


def test_a_request_from_before_it_failed_does_not_count():
    async def work():
        log = MemoryLog()
        await log.append(draft(RETRY, "early"))
        await say(log, (2, 3.0))
        await log.append(draft(RETRY, "late"))
        async with running(log) as runner:
            await stands(runner)
            # It listens from the end that the log had when the event failed.
            assert runner.standstill._read_up_to == 3
            assert runner.positions[subjects.CONTROL] == 1

    asyncio.run(work())


def test_what_fails_once_only_is_folded_on_a_fresh_state(broken):
    """As after a restart: what memory alone had wrong stops nobody."""
    tries = []

    def once(state, recorded):
        keys = evolve(state, recorded)
        if recorded.position == 2 and not tries.append(1) and len(tries) == 1:
            raise KeyError("an index is wrong")
        return keys

    async def work():
        log = MemoryLog()
        broken.clear()
        await say(log, (1, 1.0), (2, 3.0))
        async with running(log, rules=replace(RULES, evolve=once)) as runner:
            await until(lambda: runner.state.accounts.get(2) == Account(requested=3.0, answered=3))
            assert runner.state.accounts[1] == Account(requested=1.0, answered=1)

    asyncio.run(work())


def test_with_a_database_it_goes_on_from_what_is_saved_and_stands_again_after_a_restart(tmp_path):
    async def work():
        log = MemoryLog()
        database = Database(f"sqlite:///{tmp_path}/toy.db")
        METADATA.create_all(database.engine)

        def saver():
            return DatabaseSaver(database, "toy", State)

        async with running(log, saver()) as runner:
            await say(log, (1, 1.0))
            await until(lambda: runner.state.accounts.get(1) == Account(1.0, 1))
            waiting = asyncio.create_task(runner.wait_for_position(10**6, within_s=60))
            await say(log, (1, 1.0), (2, 3.0), (1, 5.0))
            await stands(runner)
            assert runner.state.accounts[1].requested == 2.0
            waiting.cancel()
        async with running(log, saver()) as runner:
            await stands(runner)
            assert runner.state.accounts[1].requested == 2.0
            await log.append(draft(skipping(runner.standstill.failed.position), "skip"))
            await until(lambda: runner.state.accounts[1] == Account(7.0, 7))
            assert 2 not in runner.state.accounts
        database.close()

    asyncio.run(work())


def test_a_message_that_breaks_its_decoder_can_be_skipped_too():
    def read(message, stream):
        raise RecursionError("nests too deep")

    async def work():
        log = MemoryLog()
        await log.append(Draft("reports.1", b"{", "report"))
        rules = replace(
            RULES, streams={subjects.CONTROL: (), subjects.REPORTS: ()}, decode={subjects.REPORTS: read}
        )
        async with running(log, rules=rules) as runner:
            await stands(runner)
            assert runner.standstill.failed.location == "REPORTS 1 reports.1"
            # The other streams go on.
            await say(log, (1, 1.0))
            await until(lambda: runner.state.accounts.get(1) is not None)
            event = msgspec.structs.replace(
                skipping(1), stream="REPORTS", skipped=(gateway.SkippedEvent("REPORTS", 1),)
            )
            await log.append(draft(event, "skip"))
            await until(lambda: runner.positions[subjects.REPORTS] == 1)

    asyncio.run(work())


def test_the_searcher_itself_goes_on_without_one_event():
    """With the real fold: a trial of an experiment that was never created."""
    poison = trial.Progressed(7, 1, 1.0)

    def stumbles(state, recorded):
        if recorded.event == poison:
            raise AttributeError("a bug")
        return SEARCHER.evolve(state, recorded)

    async def work():
        log = MemoryLog()
        await log.append(draft(poison, "poison"))
        await log.append(
            draft(gateway.UserSet(user_id=9, username="ann", admin=True, active=True, reason=""), "u")
        )
        async with running(log, rules=replace(SEARCHER, evolve=stumbles), is_leader=lambda: False) as runner:
            await stands(runner)
            await log.append(draft(skipping(1, owner="searcher"), "skip"))
            await until(lambda: runner.positions["CONTROL"] == 3)
            assert set(runner.state.people) == {9}

    asyncio.run(work())


def test_the_gateway_can_be_asked_to_skip_on_the_host():
    async def work():
        log = MemoryLog()
        await say(log, (1, 1.0), (2, 3.0))
        with pytest.raises(CannotSkip, match="CONTROL holds no event 12: it has those from 1 to 2"):
            await skip(log, "toy", "CONTROL", 12, "bug 45")
        async with running(log) as runner:
            await stands(runner)
            await skip(log, "toy", "CONTROL", 2, "bug 45")
            await until(lambda: runner.state.accounts.get(1) == Account(1.0, 1))
            assert 2 not in runner.state.accounts
        with pytest.raises(CannotSkip, match="the toy skips event 2 of CONTROL already"):
            await skip(log, "toy", "CONTROL", 2, "bug 45")
        await skip(log, "toy", "CONTROL", 1, "bug 46")
        stated = codec.decode((await log.last("control.gateway.event.toy.skipped")).body, 1)
        assert [skipped.position for skipped in stated.event.skipped] == [2, 1]
        assert stated.actor.startswith("user:")

    asyncio.run(work())


def test_a_portion_begins_with_the_event_before_which_folding_stops():
    log = MemoryLog()
    asyncio.run(say(log, *[(1, 1.0)] * 4))
    messages = [
        *map(lambda at: msgspec.structs.replace(log.streams["CONTROL"][at - 1], position=at), range(1, 5))
    ]
    assert [[message.position for message in part] for part in portions_of(messages, 3)] == [[1, 2], [3, 4]]
    assert portions_of(messages, 0) == [messages]
    assert [[message.position for message in part] for part in portions_of(messages, 1)] == [[1, 2, 3, 4]]
    assert portions_of([], 3) == [[]]


def test_a_decision_record_is_never_what_fails():
    """Its content does not matter to the fold: the broker compares positions."""

    async def work():
        log = MemoryLog()
        body = codec.encode(Decision("toy", 0, 0, "r"), id="d", actor="toy", at=0.0)
        await log.append(Draft(subjects.decision("toy"), body, "d"))
        async with running(log) as runner:
            await until(lambda: runner.positions["CONTROL"] == 1)

    asyncio.run(work())
