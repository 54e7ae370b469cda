"""A log that lost something that it had acknowledged is refused, with the positions and what to do."""

import asyncio
import contextlib
from dataclasses import dataclass

import pytest

from det_contracts import codec, subjects
from det_contracts.events import trial
from services.intake.relay import Relay
from services.kit import jetstream_feed, stream_check
from services.kit.jetstream_api import is_from_leader, request_with_retry
from services.kit.log import Draft, LogTruncated, Mark
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.log_range import read_range
from services.kit.snapshot import Snapshot
from services.kit.stream_check import ReadBroken, StreamCheck, nanoseconds
from tests.fixtures.databases import open_sqlite
from tests.fixtures.own_time import set_time

CONTROL = subjects.CONTROL
BODY = b"x" * 300


def draft(n, id=None):
    return Draft(f"control.tests.thing.{n % 7}.happened", BODY, id or f"id-{n}")


@contextlib.asynccontextmanager
async def connected(broker):
    connection = await broker.connect()
    try:
        yield connection
    finally:
        await connection.close()


async def write(connection, count, first=1, ids="id"):
    log = JetStreamLog(connection)
    for n in range(first, first + count):
        await log.append(draft(n, f"{ids}-{n}"))


async def read_to_the_end(log, after=0, stream=CONTROL):
    async with asyncio.timeout(60):
        async with log.read(stream, after=after) as feed:
            messages = []
            while not (batch := await feed.batch()).caught_up:
                messages += batch.messages
            return [*messages, *batch.messages]


async def refusal(work):
    with pytest.raises(LogTruncated) as failure:
        await asyncio.wait_for(work, 60)
    return str(failure.value)


def blocks(broker):
    return sorted((broker.folder / "jetstream").rglob("streams/CONTROL/msgs/*.blk"))


def cut(broker, count):
    """Cut bytes off the end of what the broker keeps of CONTROL."""
    last = blocks(broker)[-1]
    with last.open("r+b") as file:
        file.truncate(last.stat().st_size - count)


@pytest.mark.live
@pytest.mark.timeout(120)
@pytest.mark.parametrize("grows", [False, True], ids=["as it is", "written on"])
def test_a_cut_tail_is_refused_by_who_begins_anew(broker, grows):
    async def fill():
        async with connected(broker) as connection:
            await ensure_streams(connection.jetstream())
            await write(connection, 100)

    async def judged():
        async with connected(broker) as connection:
            if grows:
                await write(connection, 1, first=101)
            # Nothing was read before: a database that was deleted knows of no position.
            return await refusal(read_to_the_end(JetStreamLog(connection)))

    asyncio.run(fill())
    broker.stop()
    cut(broker, 3000)
    broker.start()
    output = asyncio.run(judged())
    last = 101 if grows else 100
    assert f"from position 1 to {last} it holds {last - 8} messages, 8 too few" in output
    assert "(93, 94, 95, 96, 97, 98, 99, 100)" in output
    assert "Restore the broker's data" in output


@pytest.mark.live
@pytest.mark.timeout(120)
def test_a_truncated_log_can_be_continued(broker):
    """As docs/guides/operating.md tells those who have no backup."""

    async def fill():
        async with connected(broker) as connection:
            await ensure_streams(connection.jetstream())
            await write(connection, 100)

    async def go_on():
        async with connected(broker) as connection:
            log = JetStreamLog(connection)
            assert len(await read_to_the_end(log)) == 92
            assert await log.append(draft(101)) == 93
            log_text = await refusal(read_to_the_end(log, after=95))
            assert "the log has lost its tail" in log_text
            assert "delete this service's database" in log_text

    asyncio.run(fill())
    broker.stop()
    cut(broker, 3000)
    for index in (broker.folder / "jetstream").rglob("streams/CONTROL/msgs/index.db"):
        index.unlink()
    broker.start()
    asyncio.run(go_on())


async def make_anew(connection, count):
    """Another log in place of the first, and longer than it was."""
    await connection.jetstream().delete_stream(CONTROL)
    await ensure_streams(connection.jetstream())
    await write(connection, count, ids="other")


@pytest.mark.live
@pytest.mark.timeout(120)
def test_another_log_is_known_though_it_is_longer(broker):
    async def work():
        async with connected(broker) as connection, connected(broker) as reading:
            await ensure_streams(connection.jetstream())
            await write(connection, 5)
            log = JetStreamLog(reading)
            async with log.read(CONTROL, after=0) as feed:
                while not (await feed.batch()).caught_up:
                    pass
                await make_anew(connection, 9)

                async def on():
                    while True:
                        await feed.batch()

                # Whoever reads it, and whoever reads again. One who looks before the sixth message is there
                # is told that the end is missing.
                message = await refusal(on())
                assert "not the one that was read before: position 5" in message or "lost its tail" in message
            assert log.marks[CONTROL].position == 5
            later = JetStreamLog(reading, log.marks)
            assert "not the one that was read before" in await refusal(read_to_the_end(later, after=5))
            assert len(await read_to_the_end(JetStreamLog(reading), after=5)) == 4

    asyncio.run(work())


@pytest.mark.live
@pytest.mark.timeout(120)
def test_the_same_log_is_known_after_the_broker_was_killed(broker):
    async def work():
        async with connected(broker) as connection:
            await ensure_streams(connection.jetstream())
            await write(connection, 5)
            log = JetStreamLog(connection)
            assert len(await read_to_the_end(log)) == 5
            broker.kill9()
            broker.start()
            await write(connection, 3, first=6)
            again = JetStreamLog(connection, log.marks)
            assert [m.position for m in await read_to_the_end(again, after=5)] == [6, 7, 8]

    asyncio.run(work())


@pytest.mark.live
@pytest.mark.timeout(120)
@pytest.mark.parametrize("subject", [subjects.reports(1), subjects.logs("1.t")])
def test_reports_and_lines_that_were_acknowledged_outlive_a_kill(broker, subject):
    async def work():
        async with connected(broker) as connection:
            await ensure_streams(connection.jetstream())
            log = JetStreamLog(connection)
            for n in range(50):
                await log.append(Draft(subject, BODY, f"one-{n}"))
            broker.kill9()
            broker.start()
            stream = subjects.REPORTS if subject.startswith("reports") else subjects.LOGS
            assert len(await read_to_the_end(log, stream=stream)) == 50

    asyncio.run(work())


@pytest.mark.live
@pytest.mark.timeout(120)
def test_a_service_that_knows_a_lost_log_does_not_create_it_again(broker, monkeypatch):
    monkeypatch.setattr("services.kit.log_jetstream.REFUSAL_PATIENCE_S", 0.0)

    async def work():
        async with connected(broker) as connection:
            js = connection.jetstream()
            outcome = await refusal(ensure_streams(js, read_positions={CONTROL: 7}))
            assert "stream CONTROL is gone, but position 7 was read already" in outcome
            assert await js.streams_info() == []
            await ensure_streams(js, read_positions={CONTROL: 0})
            await write(connection, 7)
            await ensure_streams(js, read_positions={CONTROL: 7})

    asyncio.run(work())


@pytest.mark.live
@pytest.mark.timeout(120)
def test_who_has_read_for_long_looks_again(broker, monkeypatch):
    monkeypatch.setattr(jetstream_feed, "CHECK_EVERY_S", 0.2)

    async def work():
        async with connected(broker) as connection:
            js = connection.jetstream()
            await js.add_stream(name=CONTROL, subjects=["control.>"])
            await write(connection, 5)
            async with JetStreamLog(connection).read(CONTROL, after=0) as feed:
                while not (await feed.batch()).caught_up:
                    pass
                await js.delete_msg(CONTROL, 2)
                assert "1 too few (2)" in await refusal(feed.batch())

    asyncio.run(work())


@pytest.mark.live
@pytest.mark.timeout(120)
def test_a_short_look_back_is_judged_too(broker):
    async def work():
        async with connected(broker) as connection:
            await ensure_streams(connection.jetstream())
            await write(connection, 5)
            log = JetStreamLog(connection, {CONTROL: Mark(3, 1)})
            assert "position 3 holds" in await refusal(read_range(log, CONTROL, after=0, before=2))

    asyncio.run(work())


def test_the_newest_message_is_kept_beside_the_positions(tmp_path):
    @dataclass
    class State:
        pass

    database = open_sqlite(tmp_path / "searcher.db", "searcher")
    snapshot = Snapshot("searcher", State)
    marks = {CONTROL: Mark(7, 1_790_000_000_123_456_789)}

    async def work():
        assert await database.read(snapshot.marks) == {}
        assert await database.write(lambda c: snapshot.save(c, {}, {CONTROL: 6}, marks))
        assert await database.read(snapshot.marks) == marks
        _, positions = await database.read(snapshot.load)
        assert positions == {CONTROL: 6}

    asyncio.run(work())
    database.close()


def test_times_of_the_broker():
    assert nanoseconds("2026-11-22T09:39:48.616655905Z") == 1795340388616655905
    assert nanoseconds("1970-01-01T00:00:01.5Z") == 1_500_000_000
    assert nanoseconds("1970-01-01T00:00:02Z") == 2_000_000_000


LEADER = {"leader": "n1", "replicas": [{"name": "n2"}, {"name": "n3"}]}
FOLLOWER = {"leader": "n1", "replicas": [{"name": "n1"}, {"name": "n3"}]}
LEADERLESS = {"leader": "", "replicas": [{"name": "n1"}, {"name": "n3"}]}


@pytest.mark.parametrize(
    ("cluster", "knows"),
    [(None, True), (LEADER, True), (FOLLOWER, False), (LEADERLESS, False), ({"name": "c"}, False)],
)
def test_only_the_leader_knows_the_end(cluster, knows):
    assert is_from_leader({"cluster": cluster} if cluster else {}) is knows


class Asked:
    """A connection whose broker always says the same."""

    def __init__(self, state, cluster):
        self.answer = {"state": state} | ({"cluster": cluster} if cluster else {})

    async def ask(self, connection, subject, body):
        return self.answer


def stream(last, messages=None, first=1):
    return {"first_seq": first, "last_seq": last, "messages": last if messages is None else messages}


@pytest.fixture
def check(monkeypatch):
    """A function that has a state judged, and says what came of it; time goes on by a second at each look."""
    now = [0.0]

    def judged(state, cluster, position, looks=1, name=CONTROL):
        answers = Asked(state, cluster)
        monkeypatch.setattr(stream_check, "request", answers.ask)
        set_time(monkeypatch, stream_check, monotonic=lambda: now[0])
        verifier = StreamCheck(None, name, {})
        for _ in range(looks):
            now[0] += 1.0
            try:
                asyncio.run(verifier.verify(position))
                outcome = "well"
            except (ReadBroken, LogTruncated) as error:
                outcome = type(error).__name__
        return outcome

    return judged


def test_one_broker_is_believed_at_once(check):
    assert check(stream(5), None, 5) == "well"
    assert check(stream(4), None, 5) == "LogTruncated"
    assert check(stream(4), {"leader": "n1"}, 5) == "LogTruncated"
    assert check(stream(9, messages=8), None, 5) == "LogTruncated"
    assert check(stream(9, first=7, messages=3), None, 5) == "PositionRemoved", "it may lie in the archive"
    assert check({"first_seq": 0, "last_seq": 0, "messages": 0}, None, 0) == "well"


def test_what_a_replica_says_that_is_behind_is_never_believed(check):
    assert check(stream(4), FOLLOWER, 5, looks=100) == "ReadBroken"
    assert check(stream(4), LEADERLESS, 5, looks=100) == "ReadBroken"


def test_a_leader_of_several_must_say_so_for_a_while(check):
    assert check(stream(4), LEADER, 5, looks=3) == "ReadBroken"
    assert check(stream(4), LEADER, 5, looks=8) == "LogTruncated"
    assert check(stream(9, messages=8), LEADER, 5, looks=3) == "ReadBroken"
    assert check(stream(9, messages=8), LEADER, 5, looks=8) == "LogTruncated"


def test_streams_that_forget_by_age_may_begin_anywhere(check):
    assert check(stream(9, first=7, messages=3), None, 5, name=subjects.REPORTS) == "well"
    assert check(stream(9, first=7, messages=3), None, 10, name=subjects.REPORTS) == "LogTruncated"


def test_an_intake_whose_inbox_alone_is_lost_says_how_to_go_on_and_that_is_so(broker):
    """The very command that the refusal names, as NATS' own tool sends it."""

    async def work():
        async with connected(broker) as connection:
            js = connection.jetstream()
            await ensure_streams(js)
            log, relay = JetStreamLog(connection), Relay(JetStreamLog(connection))
            working = asyncio.create_task(relay.run())
            for n in range(3):
                last = await log.append(stated(n))
            async with asyncio.timeout(60):
                while relay.position < last:
                    await asyncio.sleep(0.01)
            working.cancel()
            await asyncio.wait([working])
            await js.delete_stream(subjects.WITNESS)
            gone = await refusal(ensure_streams(js, read_positions={subjects.WITNESS: last}))
            await ensure_streams(js)
            empty = await refusal(Relay(log).run())
            for text in (gone, empty):
                assert f"nats stream purge WITNESS --seq {last + 1} " in text
                assert "database" not in text
            purge = {"seq": last + 1}
            answer = await request_with_retry(connection, f"STREAM.PURGE.{subjects.WITNESS}", purge)
            assert answer["success"]
            again = Relay(log)
            working = asyncio.create_task(again.run())
            assert await log.append(stated(9)) == last + 1
            async with asyncio.timeout(60):
                while again.position < last + 1:
                    await asyncio.sleep(0.01)
            working.cancel()
            await asyncio.wait([working])
            facts = [m for m in await read_to_the_end(log) if m.subject.startswith("control.trial.")]
            assert [codec.decode(fact.body, 0).event.units for fact in facts] == [0.0, 1.0, 2.0, 9.0]

    asyncio.run(work())


def stated(n):
    body = codec.encode(trial.Progressed(12, 1, float(n)), id=f"s-{n}", actor="trial:12", at=1.0)
    return Draft(subjects.witness_of_trial(12), body, f"s-{n}")
