"""A worker says log lines of what was placed on it, and of nothing else, whatever it claims."""

import asyncio
import contextlib
from types import SimpleNamespace

import msgspec
import pytest

from det_contracts import subjects
from services.intake.edge import BATCH_BYTES, Edge
from services.intake.lines import Head, LinesRefused, Placements, head_of
from services.intake.measures import IntakeMeasures
from services.kit import log_budget
from services.kit.credentials import worker_inbox
from services.kit.log import Draft, NeverStored
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.log_memory import MemoryLog
from tests.fixtures.lines import assigned, lines, task_of

MINE, OTHERS, WIDE = "1.a.1", "2.b.1", "3.c.1"
PLACED = {MINE: ("w1",), OTHERS: ("w2",), WIDE: ("w1", "w2")}

FORGED = {
    "of another's run, in the own name": lines(OTHERS),
    "of another's run, in the other's name": lines(OTHERS, "w2"),
    "of a run of both, in the other's name": lines(WIDE, "w2"),
    "under another's task": lines(MINE, task="2.b"),
    "of a run that there is not": lines("9.z.1"),
    "of any run": lines("*", task="1.a"),
    "of all runs": lines(">", task="1.a"),
    "of a run with a line end": lines("1.a.1\r\nNats-Rollup: all"),
    "of a task with a blank": lines(MINE, task="1.a x"),
    "of a source with a line end": lines(MINE, source="task\r\nNats-Expected-Last-Msg-Id: x"),
    "of a source as long as a book": lines(MINE, source="x" * 100_000),
    "in no spool": lines(MINE, offset=-1),
    "nothing": b"",
    "no JSON": b"\xff",
    "deep": b"[" * 100_000,
    "a list": b"[]",
}


class Cluster:
    """An edge over a real broker, where three runs were placed."""

    def __init__(self, broker, stack):
        self.broker, self._stack = broker, stack

    async def up(self):
        self.service = await self._enter(self.broker.authority.operator(), "_INBOX")
        await ensure_streams(self.service.jetstream())
        self.log = JetStreamLog(self.service)
        for allocation, workers in PLACED.items():
            await self.log.append(assigned(allocation, workers))
        intake = await self._enter(self.broker.authority.service(subjects.INTAKE), "_INBOX")
        edge = Edge(intake, JetStreamLog(intake), IntakeMeasures(subjects.INTAKE), shut_s=0.0)
        running = asyncio.create_task(edge.run())
        self._stack.callback(running.cancel)
        while intake._sid < 3:
            await asyncio.sleep(0)
        await intake.flush()
        return self

    async def worker(self, id):
        return JetStreamLog(await self._enter(self.broker.authority.worker(id), worker_inbox(id)))

    async def _enter(self, credentials, inbox):
        connection = await self.broker.connect(credentials, inbox_prefix=inbox.encode())
        self._stack.push_async_callback(connection.close)
        return connection

    async def stored(self):
        """What lies in LOGS: subject and body of each message."""
        _, end = await self.log.bounds(subjects.LOGS)
        messages = []
        async with self.log.read(subjects.LOGS, after=0) as feed:
            while len(messages) < end:
                messages += [(message.subject, message.body) for message in (await feed.batch()).messages]
        return messages


def played(broker, story):
    async def work():
        async with contextlib.AsyncExitStack() as stack, asyncio.timeout(100):
            await story(await Cluster(broker, stack).up())

    asyncio.run(work())


@pytest.mark.live
def test_a_worker_says_lines_of_what_was_placed_on_it_and_of_nothing_else(broker):
    async def story(cluster):
        first, second = await cluster.worker("w1"), await cluster.worker("w2")
        for name, body in FORGED.items():
            with pytest.raises(NeverStored):
                await first.append(Draft(subjects.lines_of_worker("w1"), body, name))
        assignments = [(first, "w1", MINE), (second, "w2", OTHERS), (first, "w1", WIDE), (second, "w2", WIDE)]
        for log, worker, allocation in assignments:
            draft = Draft(subjects.lines_of_worker(worker), lines(allocation, worker), "whatever")
            assert await log.append(draft) == await log.append(draft)
        expected = [(subjects.logs(task_of(run)), lines(run, worker)) for _, worker, run in assignments]
        assert await cluster.stored() == expected

    played(broker, story)


@pytest.mark.live
def test_nobody_claims_the_id_of_anothers_lines(broker):
    """Under an id that was used lately the broker stores nothing more."""

    async def story(cluster):
        first, second = await cluster.worker("w1"), await cluster.worker("w2")
        claimed = msgspec.json.decode(lines(OTHERS, "w2"), type=Head).id
        await first.append(Draft(subjects.lines_of_worker("w1"), lines(MINE), claimed))
        await second.append(Draft(subjects.lines_of_worker("w2"), lines(OTHERS, "w2"), claimed))
        assert [subject for subject, _ in await cluster.stored()] == ["logs.1.a", "logs.2.b"]

    played(broker, story)


class Connection:
    """Keeps what is published; there is no broker."""

    def __init__(self):
        self.heard, self.published = {}, []
        self.news = asyncio.Event()

    def new_inbox(self):
        return "_INBOX.x"

    async def subscribe(self, pattern, queue="", cb=None, **limits):
        self.heard[pattern] = cb

    async def publish(self, subject, body, reply, headers):
        self.published.append(subject)
        self.news.set()

    async def say(self, worker, body, reply="r"):
        message = SimpleNamespace(
            subject=subjects.lines_of_worker(worker), data=body, reply=reply, headers=None
        )
        await self.heard[subjects.lines_of_worker("*")](message)

    async def until(self, *expected):
        while self.published != list(expected):
            self.news.clear()
            assert len(self.published) <= len(expected), self.published
            await self.news.wait()


class Slow(MemoryLog):
    """Looks nothing up before it may."""

    def __init__(self):
        super().__init__()
        self.may, self.subjects = asyncio.Event(), []

    async def last(self, subject):
        self.subjects.append(subject)
        if subject.endswith(f"{OTHERS}.assigned"):
            await self.may.wait()
        return await super().last(subject)


@contextlib.asynccontextmanager
async def edge(journal, shut_s=1000.0):
    for allocation, workers in PLACED.items():
        await journal.append(assigned(allocation, workers))
    connection = Connection()
    connection.edge = Edge(connection, journal, IntakeMeasures(subjects.INTAKE), shut_s=shut_s)
    running = asyncio.create_task(connection.edge.run())
    while len(connection.heard) < 3:
        await asyncio.sleep(0)
    async with asyncio.timeout(60):
        yield connection
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_who_waits_for_a_look_at_the_log_keeps_nobody_else_waiting_and_stays_in_order():
    async def work():
        journal = Slow()
        async with edge(journal) as connection:
            await connection.say("w2", lines(OTHERS, "w2"))
            await connection.say("w2", lines(WIDE, "w2"))
            await connection.say("w1", lines(MINE))
            await connection.until("logs.1.a")
            journal.may.set()
            await connection.until("logs.1.a", "logs.2.b", "logs.3.c")

    asyncio.run(work())


def test_a_worker_that_forges_is_not_heard_for_a_while_and_costs_one_look():
    async def work():
        journal = Slow()
        async with edge(journal) as connection:
            for number in range(1000):
                await connection.say("w1", lines(f"9.z.{number}"), "refused")
            await connection.say("w2", lines(WIDE, "w2"))
            await connection.until("refused", "logs.3.c")
            await connection.say("w1", lines(MINE))
            assert connection.edge.queued_bytes == 0
            await connection.say("w2", lines(WIDE, "w2"))
            await connection.until("refused", "logs.3.c", "logs.3.c")
            assert len([subject for subject in journal.subjects if ".9.z." in subject]) == 1

    asyncio.run(work())


def test_after_a_while_it_is_heard_again():
    async def work():
        async with edge(MemoryLog(), shut_s=0.0) as connection:
            await connection.say("w1", lines(OTHERS), "refused")
            await connection.until("refused")
            while "logs.1.a" not in connection.published:
                await connection.say("w1", lines(MINE))
                await asyncio.sleep(0)

    asyncio.run(work())


@pytest.mark.parametrize(("bytes_per_s", "passes"), [(1e-6, 20), (1e12, 100)], ids=["waits", "goes on"])
def test_a_worker_that_sends_lines_without_end_waits_and_others_do_not(monkeypatch, bytes_per_s, passes):
    """Else the metrics service has them all to store, and everybody's lines come behind them."""
    monkeypatch.setattr(log_budget, "BURST_BYTES", 19 * (len(lines(MINE)) + BATCH_BYTES) + 1)
    monkeypatch.setattr(log_budget, "BYTES_PER_S", bytes_per_s)

    async def work():
        async with edge(MemoryLog()) as connection:
            for _ in range(100):
                await connection.say("w1", lines(MINE))
            await connection.until(*["logs.1.a"] * passes)
            await connection.say("w2", lines(WIDE, "w2"))
            await connection.until(*["logs.1.a"] * passes, "logs.3.c")
            # What is not passed on yet is kept, in order.
            assert bool(connection.edge.queued_bytes) is (passes < 100)

    asyncio.run(work())


def test_a_log_that_cannot_be_read_refuses_nobody():
    class Broken(MemoryLog):
        broken = True

        async def last(self, subject):
            if self.broken:
                self.broken = False
                raise OSError("the archive is away")
            return await super().last(subject)

    async def work():
        async with edge(Broken(), shut_s=0.0) as connection:
            while not connection.published:
                await connection.say("w1", lines(MINE))
                await asyncio.sleep(0)
            assert set(connection.published) == {"logs.1.a"}

    asyncio.run(work())


def test_what_was_not_assigned_yet_is_looked_up_again():
    async def work():
        journal = MemoryLog()
        placements = Placements(journal)
        assert await placements.look_up(MINE) is None
        await journal.append(assigned(MINE, ("w1",)))
        assert (await placements.look_up(MINE)).workers == {"w1"}
        assert placements.cached(MINE) is not None

    asyncio.run(work())


UNREADABLE = ("of a source", "no", "deep")


@pytest.mark.parametrize("body", [body for name, body in FORGED.items() if name.startswith(UNREADABLE)])
def test_what_is_said_of_a_batch_is_read_before_anything_is_looked_up(body):
    with pytest.raises(LinesRefused):
        head_of(subjects.lines_of_worker("w1"), body)
