"""Facts come from WITNESS into CONTROL once each and in order, whoever relays them and dies at it."""

import asyncio
import random

import pytest
import structlog

from det_contracts import codec, subjects
from det_contracts.events import Decision, trial, worker
from services.intake import relay as module
from services.intake.relay import Relay
from services.kit import log_budget
from services.kit.cancellation import cancel_and_wait
from services.kit.inbox import Inbox
from services.kit.log import Draft, Fence, FenceLost, NotStored, OutcomeUnknown
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.log_memory import MemoryLog
from services.kit.records import read_event
from tests.fixtures.intake import admitting
from tests.fixtures.waiting import until

DECISION = subjects.decision(subjects.INTAKE)


def progress(number, about=7):
    body = codec.encode(trial.Progressed(about, 1, float(number)), id="x", actor="", at=1.0)
    return Draft(subjects.witness_of_trial(about), body, f"m-{about}-{number}")


def control(log):
    return [read_event(m) for m in log.streams[subjects.CONTROL]]


def units(log):
    return [recorded.event.units for recorded in control(log) if isinstance(recorded.event, trial.Progressed)]


def decisions(log):
    return [recorded.event for recorded in control(log) if isinstance(recorded.event, Decision)]


@pytest.fixture(autouse=True)
def says_at_once(monkeypatch):
    """A decision follows a fact at once, where it would a second later."""
    monkeypatch.setattr(module, "STATED_EVERY_S", 0.01)
    monkeypatch.setattr(module, "RETRY_S", 0.01)


def test_facts_come_in_order_with_their_positions():
    async def work():
        log = MemoryLog()
        async with admitting(log):
            for number in range(10):
                await log.append(progress(number, about=number % 3))
            await until(lambda: len(units(log)) == 10)
        assert units(log) == list(range(10))
        facts = [fact for fact in control(log) if fact.witness]
        assert [fact.witness for fact in facts] == list(range(1, 11))

    asyncio.run(work())


def test_many_that_wait_are_one_batch_and_few_are_not():
    async def work():
        log = MemoryLog()
        for number in range(module.ONE_BY_ONE + 1):
            await log.append(progress(number))
        async with admitting(log):
            await until(lambda: units(log))
            await log.append(progress(1000))
            await until(lambda: 1000 in units(log))
        assert [decision.count for decision in decisions(log)][:2] == [0, module.ONE_BY_ONE + 1]
        assert units(log) == [*range(module.ONE_BY_ONE + 1), 1000]

    asyncio.run(work())


def test_a_broker_that_takes_no_batches_gets_single_messages():
    class Single(MemoryLog):
        async def append_batch(self, drafts, *, fence):
            if len(drafts) > 1:
                raise NotStored("too many batches are in flight")
            return await super().append_batch(drafts, fence=fence)

    async def work():
        log = Single()
        for number in range(100):
            await log.append(progress(number))
        async with admitting(log):
            await until(lambda: len(units(log)) == 100)
        assert units(log) == list(range(100))

    asyncio.run(work())


def test_what_is_refused_holds_up_nobody_and_is_behind_the_next_decision():
    async def work():
        log = MemoryLog()
        await log.append(progress(1))
        await log.append(Draft(subjects.witness_of_trial(8), b"[" * 10_000, "bad"))
        await log.append(progress(2))
        await log.append(Draft(subjects.witness_of_trial(8), b"", "worse"))
        async with admitting(log):
            await until(lambda: decisions(log) and decisions(log)[-1].to == 4)
        assert units(log) == [1, 2]

    asyncio.run(work())


def test_nothing_is_decided_while_nothing_is_said():
    async def work():
        log = MemoryLog()
        await log.append(progress(1))
        async with admitting(log):
            await until(lambda: decisions(log) and decisions(log)[-1].to == 1)
            before = len(decisions(log))
            await asyncio.sleep(10 * module.STATED_EVERY_S)
            assert len(decisions(log)) == before

    asyncio.run(work())


def test_what_is_admitted_makes_room_for_its_sender():
    async def work():
        log = MemoryLog()
        async with admitting(log):
            await log.append(progress(0))
            await until(lambda: log.removed_through[subjects.WITNESS] == 1)

    asyncio.run(work())


def test_who_takes_over_from_one_who_has_just_taken_over_goes_on_behind_all_facts():
    """A decision that is made to take over says nothing of facts that stand alone before it."""

    async def work():
        log = MemoryLog()
        for number in range(3):
            await log.append(progress(number))
        async with admitting(log):
            await until(lambda: len(units(log)) == 3)
        for _ in range(3):
            # It dies as soon as it has taken over.
            relay = Relay(log)
            await relay._take_over()
            assert relay.position == 3
        await log.append(progress(3))
        async with admitting(log):
            await until(lambda: len(units(log)) == 4)
        assert units(log) == [0, 1, 2, 3]

    asyncio.run(work())


def test_what_a_dead_relay_had_sent_does_not_arrive_behind_its_successor():
    async def work():
        log = MemoryLog()
        await log.append(progress(0))
        first = Relay(log)
        await first._take_over()
        under_way = Fence(DECISION, first._fence)
        async with admitting(log):
            await until(lambda: units(log) == [0])
            late = control(log)[-1]
            with pytest.raises(FenceLost):
                await log.append_batch([Draft("control.trial.7.progressed", b"{}", "late")], fence=under_way)
        assert late.witness in (0, 1)
        assert units(log) == [0]

    asyncio.run(work())


def test_an_answer_that_is_lost_is_looked_up_in_the_log():
    class NoAnswer(MemoryLog):
        lost = 0

        async def append_batch(self, drafts, *, fence):
            position = await super().append_batch(drafts, fence=fence)
            self.lost += 1
            if self.lost % 3 == 0:
                raise OutcomeUnknown("no answer")
            return position

    async def work():
        log = NoAnswer()
        async with admitting(log):
            for number in range(30):
                await log.append(progress(number))
            await until(lambda: len(units(log)) >= 30)
        assert units(log) == list(range(30))

    asyncio.run(work())


def registered(instance, replaces):
    return worker.WorkerRegistered(
        worker_id="w",
        instance=instance,
        session=instance,
        pool="default",
        address="",
        version="1",
        slots=(),
        reads_after=0,
        running=(),
        replaces=replaces,
    )


def test_of_two_workers_that_replace_the_same_registration_one_is_admitted():
    async def work():
        log = MemoryLog()
        for instance in ("a", "b"):
            body = codec.encode(registered(instance, 0), id="x", actor="", at=1.0)
            await log.append(Draft(subjects.witness_of_worker("w"), body, instance))
        async with admitting(log):
            await until(lambda: decisions(log) and decisions(log)[-1].to == 2)
            there = [
                recorded for recorded in control(log) if isinstance(recorded.event, worker.WorkerRegistered)
            ]
            assert [registration.event.instance for registration in there] == ["a"]
            body = codec.encode(registered("c", there[0].position), id="x", actor="", at=1.0)
            await log.append(Draft(subjects.witness_of_worker("w"), body, "c"))
            await until(lambda: decisions(log)[-1].to == 3)
        there = [
            recorded.event for recorded in control(log) if isinstance(recorded.event, worker.WorkerRegistered)
        ]
        assert [registration.instance for registration in there] == ["a", "c"]

    asyncio.run(work())


def test_an_inbox_is_read_when_all_that_was_stated_is_in_the_log():
    async def work():
        log, now = MemoryLog(), 100.0
        inbox = Inbox(log, lambda: now)
        assert await inbox.is_fully_folded()
        await log.append(progress(1))
        await log.append(Draft(subjects.witness_of_trial(8), b"", "bad"))
        assert not await inbox.is_fully_folded()
        assert inbox.seconds_until(50.0) > 0
        async with admitting(log):
            await until(lambda: decisions(log) and decisions(log)[-1].to == 2)
        inbox.on_folded(control(log))
        assert await inbox.is_fully_folded()
        assert inbox.seconds_until(50.0) == 0
        later = Inbox(log, lambda: now)
        await later.restore_position(len(log.streams[subjects.CONTROL]))
        assert await later.is_fully_folded()

    asyncio.run(work())


FACTS = 600


@pytest.mark.live
@pytest.mark.timeout(120)
def test_three_relays_that_are_killed_at_random_admit_each_fact_once(broker):
    """On a real broker: two or three believe to lead at any time, and die wherever they are."""

    async def work():
        connection = await broker.connect()
        await ensure_streams(connection.jetstream())
        chance, log = random.Random(1), JetStreamLog(connection)
        leads, calm = [True, False, False], list[bool]()

        over = asyncio.get_running_loop().create_future()

        async def live(number):
            mine = await broker.connect()
            while not over.done():
                running = asyncio.create_task(
                    Relay(JetStreamLog(mine), is_leader=lambda: leads[number]).run()
                )
                # In the end one lives for long, as this machine may be busy.
                within_s = 5.0 if calm else 0.02 + 0.2 * chance.random()
                await asyncio.wait([running, over], timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
                await cancel_and_wait(running)
                leads[:] = [True, False, False] if calm else [chance.random() < 0.6 for _ in leads]
            await mine.close()

        relays = [asyncio.create_task(live(number)) for number in range(3)]
        for number in range(FACTS):
            if number % 100 < 50:
                await log.append(progress(number, about=number % 5))
            else:
                # Many at once, so that there are batches.
                draft = progress(number, about=number % 5)
                await connection.publish(draft.subject, draft.body, headers={"Nats-Msg-Id": draft.id})
        calm.append(True)
        while True:
            last = await log.last(DECISION)
            if last is not None and read_event(last).event.to == FACTS:
                break
            assert not any(relay.done() for relay in relays)
            await asyncio.sleep(0.05)
        over.set_result(None)
        await asyncio.gather(*relays)
        facts = []
        async with log.read(subjects.CONTROL, after=0, subjects=["control.trial.>"]) as feed:
            while not (batch := await feed.batch()).caught_up:
                facts += [read_event(m) for m in batch.messages]
            facts += [read_event(m) for m in batch.messages]
        assert [fact.witness for fact in facts] == list(range(1, FACTS + 1))
        assert [fact.event.units for fact in facts] == list(range(FACTS))
        _, newest = await log.bounds(subjects.CONTROL)
        assert newest > FACTS + 10, "nobody ever took over"
        await connection.close()

    asyncio.run(work())


def test_a_script_that_states_without_end_fills_no_log(monkeypatch):
    """The log is kept for good: others go on while one trial's further facts are refused for a while."""
    monkeypatch.setattr(log_budget, "BURST_BYTES", 40 * 1000)
    monkeypatch.setattr(log_budget, "BYTES_PER_S", 100)
    now = [1000.0]

    async def work():
        log = MemoryLog()
        async with admitting(log, clock=lambda: now[0]):
            for number in range(200):
                await log.append(progress(number))
                await log.append(progress(number, about=8)) if number < 10 else None
            await log.append(progress(1, about=9))
            await until(lambda: any(fact.event.trial_id == 9 for fact in control(log) if fact.witness))
            flooded = [fact for fact in control(log) if fact.witness and fact.event.trial_id == 7]
            assert 20 < len(flooded) < 100
            assert sum(len(codec.encode(fact.event, id="", actor="", at=1.0)) for fact in flooded) < 40_000
            assert sum(fact.event.trial_id == 8 for fact in control(log) if fact.witness) == 10
            now[0] += 60.0
            await log.append(progress(1000))
            await until(lambda: 1000 in units(log))

    asyncio.run(work())


def started(number, about="w1"):
    event = worker.AllocationStarted(about, f"1.a.{number}")
    body = codec.encode(event, id="x", actor="", at=1.0)
    return Draft(subjects.witness_of_worker(about), body, f"m-{about}-{number}")


def test_a_worker_that_states_without_end_fills_no_log_and_costs_little(monkeypatch):
    """All services fold what is admitted, so that a flood of one worker makes everything later."""
    monkeypatch.setattr(log_budget, "BURST_BYTES", 40 * 1000)
    monkeypatch.setattr(log_budget, "BYTES_PER_S", 100)
    looked_at, now = [], [1000.0]
    admit = module.admit

    def counted(message, at):
        looked_at.append(message.subject)
        return admit(message, at)

    monkeypatch.setattr(module, "admit", counted)

    async def work():
        log = MemoryLog()
        with structlog.testing.capture_logs() as logged:
            async with admitting(log, clock=lambda: now[0]):
                for number in range(500):
                    await log.append(started(number))
                await log.append(started(1, about="w2"))
                await until(
                    lambda: any(fact.event.worker_id == "w2" for fact in control(log) if fact.witness)
                )
                flooded = [fact for fact in control(log) if fact.witness and fact.event.worker_id == "w1"]
                assert 20 < len(flooded) < 100
                assert len(looked_at) == len(flooded) + 1
                now[0] += 60.0
                await log.append(started(1000))
                await until(lambda: len([fact for fact in control(log) if fact.witness]) == len(flooded) + 2)
                await log.append(Draft(subjects.witness_of_worker("w1"), b"", "bad"))
                await until(lambda: len(looked_at) == len(flooded) + 3)
        refused = [line for line in logged if line["event"] == "fact.not_admitted"]
        # One line for the flood, and one a minute later, which says how many there were.
        assert [line["left_out"] for line in refused] == [0, 500 - len(flooded) - 1]

    asyncio.run(work())
