"""What a runner does with what it reads: unreadable events, large portions, positions and waiting clients."""

import asyncio
import random

import msgspec
import pytest
from structlog.testing import capture_logs

from det_contracts import codec, subjects
from det_contracts.envelope import Unknown
from det_contracts.events import trial
from det_contracts.limits import STATED_BYTES
from det_contracts.problems import Refused
from services.kit.database import METADATA, Database
from services.kit.log import Draft, Stored
from services.kit.log_memory import MemoryLog
from services.kit.records import read_event
from services.kit.rules import Call, dump
from services.kit.runner import Runner
from services.kit.saver import NullSaver
from services.kit.snapshot_store import DatabaseSaver
from services.kit.standstill import Poison
from tests.fixtures.waiting import until
from tests.kit.test_runner import RULES, Bump, State, answered, ask, decided, running


def test_an_event_that_cannot_be_folded_is_logged_with_its_story():
    async def work():
        log = MemoryLog()
        await log.append(ask(7, 1.0))
        await log.append(ask(7, -1.0))
        runner = Runner(RULES, log, NullSaver(State))
        with capture_logs() as lines:
            task = asyncio.create_task(runner.run())
            await until(runner.standstill.stands.is_set)
            task.cancel()
            await asyncio.wait([task])
        poison = next(line["exc_info"] for line in lines if line["event"] == "event.failed")
        assert isinstance(poison, Poison)
        assert "message 2 of CONTROL" in str(poison)
        assert "Progressed(trial_id=7, run=1, units=1.0)" in str(poison)

    asyncio.run(work())


def test_what_nobody_knows_is_skipped():
    async def work():
        log = MemoryLog()
        body = b'{"id":"x","name":"future.thing","version":1,"actor":"a","at":0,"cause":"","data":{}}'
        await log.append(Draft("control.future.1.thing", body, "x"))
        await log.append(ask(1))
        async with running(log) as runner:
            await until(lambda: answered(runner) == 1)

    asyncio.run(work())


@pytest.mark.parametrize("seed", range(5))
def test_a_snapshot_and_the_rest_of_the_log_are_the_whole_log(seed, tmp_path):
    """Stopped and started at random, with the same database: as if it had never stopped."""

    async def work():
        chance = random.Random(seed)
        log = MemoryLog()
        total = 0
        for attempt in range(6):
            database = Database(f"sqlite:///{tmp_path}/toy.db")
            METADATA.create_all(database.engine)
            saver = DatabaseSaver(database, "toy", State)
            async with running(log, saver=saver):
                for n in range(chance.randrange(30)):
                    total += 1
                    await log.append(ask(chance.randrange(1, 4), tag=f"{attempt}-{n}"))
                    if chance.random() < 0.2:
                        await asyncio.sleep(chance.random() / 100)
            database.close()
        async with running(log) as whole:
            await until(lambda: sum(a.answered for a in whole.state.accounts.values()) == total)
            database = Database(f"sqlite:///{tmp_path}/toy.db")
            saver = DatabaseSaver(database, "toy", State)
            async with running(log, saver=saver) as resumed:
                last = (await log.bounds(subjects.CONTROL))[1]
                await resumed.wait_for_position(last)
                await saver.wait_for_position(last)
                assert dump(resumed.state) == dump(whole.state)
            stored, positions = await DatabaseSaver(database, "toy", State).load()
            assert dump(stored) == dump(whole.state)
            assert positions == {subjects.CONTROL: last}
            database.close()
        assert len(decided(log)) == total

    asyncio.run(work())


def test_asking_for_a_position_that_does_not_come_says_where_it_is():
    async def work():
        async with running(MemoryLog()) as runner:
            with pytest.raises(Refused, match="not yet at 9"):
                await runner.wait_for_position(9, within_s=0.05)

    asyncio.run(work())


def test_clients_that_hang_up_while_they_wait_hold_up_nobody():
    async def hang_up(task):
        # As a web server does whose client has gone.
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)

    async def work():
        log = MemoryLog()
        async with running(log) as runner, asyncio.timeout(60):
            for number in range(40):
                at = runner.positions[subjects.CONTROL] + 1
                clients = [asyncio.create_task(runner.wait_for_position(at)) for _ in range(20)]
                await log.append(ask(1, tag=str(number)))
                for client in clients[:-1]:
                    await hang_up(client)
                await clients[-1]
            await until(lambda: answered(runner) == 40)

    asyncio.run(work())


class Noted(NullSaver):
    """Remembers how many events each portion brought, and where it ended."""

    def __init__(self):
        super().__init__(State)
        self.portions = []

    async def changed(self, state, keys, events, positions, size=0):
        if events:
            self.portions.append((len(events), positions[subjects.CONTROL]))


def test_large_messages_are_folded_in_portions(monkeypatch):
    monkeypatch.setattr("services.kit.portions.PORTION_BYTES", 1000)

    async def work():
        log = MemoryLog()
        for n in range(40):
            await log.append(ask(f"a{n}", 0.0, tag="x" * (400 if n < 20 else 2000)))
        noted = Noted()
        async with running(log, saver=noted) as runner:
            await until(lambda: runner.positions[subjects.CONTROL] == 40)
        return noted.portions

    portions = asyncio.run(work())
    assert [count for count, _ in portions[-20:]] == [1] * 20
    assert all(1 <= count <= 2 for count, _ in portions)
    assert sum(count for count, _ in portions) == 40
    assert [position for _, position in portions][-1] == 40


@pytest.mark.parametrize("metric", [b"[" * 200 + b"]" * 200, b"[" * 5000 + b"]" * 5000, b"1" + b"0" * 5000])
def test_what_a_script_states_and_nobody_can_read_is_skipped(metric):
    done = trial.OperationCompleted(trial_id=1, run=1, seq=1, length=1, metric=0.25)
    body = codec.encode(done, id="x", actor="trial:1", at=1.0)
    assert read_event(Stored(codec.subject_of(done), 1, body), subjects.CONTROL).event == done
    body = body.replace(b"0.25", metric)
    assert isinstance(read_event(Stored(codec.subject_of(done), 1, body), subjects.CONTROL).event, Unknown)


@pytest.mark.parametrize(
    "change",
    [
        {"run": -1},
        {"steps_completed": 2**63},
        {"resources": {"a": 2**63}},
        {"uuid": "no token"},
        {"uuid": "a\n"},
        {"uuid": "a" * 65},
        {"task_id": "a\0"},
        {"allocation_id": "a" * 10_001},
        {"metadata": {"text": "x" * STATED_BYTES}},
    ],
)
def test_what_no_database_would_take_is_no_event(change):
    fact = trial.CheckpointStored(
        trial_id=1,
        experiment_id=1,
        run=1,
        task_id="1.a",
        allocation_id="1.a.1",
        uuid="a",
        resources={"a": 1},
        metadata={"\0": 2**80},
        steps_completed=1,
    )
    for stated, kind in ((fact, trial.CheckpointStored), (msgspec.structs.replace(fact, **change), Unknown)):
        body = codec.encode(stated, id="x", actor="trial:1", at=1.0)
        assert type(read_event(Stored(codec.subject_of(fact), 1, body), subjects.CONTROL).event) is kind


def test_waiters_are_woken_by_events_and_by_leadership():
    async def work():
        async with running(MemoryLog()) as runner:
            await runner.command(Bump(1), Call("c", 0.0), within_s=60)
            await until(lambda: answered(runner) == 1)
            position = runner._changes.position
            assert position > 0
            waiting = asyncio.ensure_future(runner.wait_for_change(position))
            await asyncio.sleep(0)
            assert not waiting.done(), "nothing has happened since"
            runner.on_leadership_change()
            assert await waiting > position
            waiting = asyncio.ensure_future(runner.wait_for_change(runner._changes.position))
            await runner.command(Bump(1), Call("d", 0.0), within_s=60)
            assert await waiting > position

    asyncio.run(work())
