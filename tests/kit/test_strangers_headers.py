"""No header that a script or a worker gives a message keeps a stream from taking what others say.

On one broker, where streams take their words themselves, and on three, where the intake passes them on.
"""

import asyncio
import contextlib
import gc
import json
import time
from collections.abc import Callable

import pytest
from nats.errors import Error as NatsError

from det_contracts import subjects
from det_contracts.limits import NAME_CHARACTERS
from services.intake.edge import MAX_HEADER_CHARACTERS, Edge, forwarded_headers
from services.intake.measures import IntakeMeasures
from services.kit import nats_client
from services.kit.credentials import mint_trial, trial_inbox, worker_inbox
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from tests.fixtures.broker import RealBroker
from tests.fixtures.lines import assigned, lines
from tests.fixtures.three_brokers import ThreeBrokers
from worker.order_feed import OrderFeed

# The client library leaves the sockets of broken connections to the garbage collector.
pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]
TRIAL, WORKER = 12, "w1"
LAST, BY_SUBJECT = "Nats-Expected-Last-Sequence", "Nats-Expected-Last-Subject-Sequence"
HEADERS = [
    {"Nats-Expected-Last-Msg-Id": "no such"},
    {"Nats-Expected-Last-Msg-Id": "no such", "Nats-Msg-Id": "one"},
    {"nats-expected-last-msg-id": "no such"},
    {LAST: "12345"},
    {LAST: "0"},
    {LAST: "none"},
    {BY_SUBJECT: "12345"},
    {BY_SUBJECT: "12345", f"{BY_SUBJECT}-Subject": "witness.>"},
    {BY_SUBJECT: "0", f"{BY_SUBJECT}-Subject": "control.x"},
    {"Nats-Expected-Stream": "CONTROL"},
    {"Nats-Rollup": "all"},
    {"Nats-Rollup": "sub"},
    {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "1"},
    {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "2", "Nats-Batch-Commit": "1"},
    {"Nats-Batch-Id": "b" * 100, "Nats-Batch-Sequence": "none"},
    {"Nats-TTL": "1s"},
    {"Nats-TTL": "none"},
    {"Nats-Incr": "+1"},
    {"Nats-Schedule": "@every 1s", "Nats-Schedule-Target": "witness.trial.13"},
    {"Nats-Schedule": "none", "Nats-Schedule-TTL": "none"},
    {"Nats-Marker-Reason": "MaxAge"},
    {"Nats-Required-Api-Level": "99"},
    {"Nats-Stream-Source": "CONTROL 1 > > >"},
    {"Nats-Trace-Dest": "reports.13.metrics", "Nats-Trace-Only": "true"},
    {"Nats-Msg-Id": "the same"},
    {"Nats-Msg-Id": "the same"},
    {"Nats-Msg-Id": "x" * 60_000},
    {"X": "y" * 65_400},
    {"X": "y" * 200_000},
]
SAID_BY_TRIAL = [subjects.witness_of_trial(TRIAL), subjects.reports(TRIAL)]
SAID_BY_WORKER = [
    subjects.witness_of_worker(WORKER),
    subjects.lines_of_worker(WORKER),
    subjects.newest_orders_check(WORKER),
]
ANSWERED_S, STORED_S = 1.0, 30.0
LEADERS = 5
"""Attempts to say two things to one leader."""


class World:
    """A script and a worker who write what they like, and another script that only wants to be heard."""

    def __init__(self, brokers: RealBroker | ThreeBrokers, stack: contextlib.AsyncExitStack) -> None:
        self.brokers, self._stack = brokers, stack

    async def up(self) -> "World":
        authority = self.brokers.authority
        replicas = len(getattr(self.brokers, "names", "1"))
        self.operator = await self.connect("operator", authority.operator())
        await ensure_streams(self.operator.jetstream(), replicas=replicas)
        await JetStreamLog(self.operator).append(assigned("1.a.1", (WORKER,)))
        self.edges = [
            await self.connect(f"edge-{number}", authority.service(subjects.INTAKE)) for number in (1, 2)
        ]
        for connection in self.edges:
            edge = Edge(connection, JetStreamLog(connection), IntakeMeasures(subjects.INTAKE), shut_s=0.0)
            task = asyncio.create_task(edge.run())
            self._stack.callback(task.cancel)
        self.script, self.other = [
            await self.connect(f"script-{id}", self._of_trial(id), inbox_prefix=trial_inbox(id).encode())
            for id in (TRIAL, 13)
        ]
        inbox = worker_inbox(WORKER).encode()
        self.worker = await self.connect("worker", authority.worker(WORKER), inbox_prefix=inbox)
        return self

    def _of_trial(self, id: int) -> str:
        return mint_trial(self.brokers.authority.trial_signing_seed, self.brokers.authority.scripts, id)

    async def connect(self, name: str, credentials: str, **options: object) -> nats_client.Client:
        path = self.brokers.folder / f"{name}.creds"
        path.write_text(credentials)

        async def on_error(error: Exception) -> None:
            """What is told of brokers that are killed is no news."""

        connection = await nats_client.connect(
            self.brokers.url.split(","),
            user_credentials=str(path),
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.05,
            ping_interval=1,
            error_cb=on_error,
            **options,
        )
        self._stack.push_async_callback(connection.close)
        return connection

    async def say(self, sender: nats_client.Client, subject: str, **options: object) -> dict:
        """What the stream answers; empty where nobody does."""
        with contextlib.suppress(NatsError, TimeoutError):
            body = lines("1.a.1", WORKER) if subject == SAID_BY_WORKER[1] else b"x"
            return json.loads((await sender.request(subject, body, timeout=ANSWERED_S, **options)).data)
        return {}

    async def say_until_stored(self, sender: nats_client.Client, subject: str) -> None:
        deadline = time.monotonic() + STORED_S
        while "error" in (answer := await self.say(sender, subject)) or not answer:
            assert time.monotonic() < deadline, f"{subject}: nothing is stored any more, but {answer}"
            await asyncio.sleep(0.05)

    async def say_twice(self, sender: nats_client.Client, subject: str) -> tuple[dict, dict]:
        """What the stream answers to a message and its repeat.

        Both are said again, under another id, if another broker became the leader in between: it may not have
        learned of the first one yet.
        """
        for number in range(LEADERS):
            before, headers = await self.leader(subject), {"Nats-Msg-Id": f"twice-{number}"}
            both = [await self.say(sender, subject, headers=headers) for _ in range(2)]
            if all(both) and before == await self.leader(subject):
                return both[0], both[1]
        raise AssertionError(f"{subject}: no leader stayed for as long as two messages take")

    async def leader(self, subject: str) -> str | None:
        info = await self.operator.jetstream().stream_info(subjects.stream_of(subject))
        return info.cluster.leader if info.cluster else None

    async def others_are_heard(self) -> None:
        for subject in ("witness.trial.13", "reports.13.metrics"):
            await self.say_until_stored(self.other, subject)
        for subject in (subjects.logs("other"), subjects.orders(WORKER)):
            await self.say_until_stored(self.operator, subject)

    async def try_everything(self) -> None:
        """Each header on each subject, one after the other and many at once."""
        for sender, own_subjects in ((self.script, SAID_BY_TRIAL), (self.worker, SAID_BY_WORKER)):
            for headers in HEADERS:
                await asyncio.gather(
                    *(self.say(sender, subject, headers=headers) for subject in own_subjects)
                )
            crowd = [
                self.say(sender, subject, headers=h)
                for subject in own_subjects
                for h in HEADERS[:12]
                for _ in range(8)
            ]
            await asyncio.gather(*crowd)


def played(brokers: RealBroker | ThreeBrokers, story: Callable) -> None:
    async def work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            await story(await World(brokers, stack).up())

    asyncio.run(work())
    gc.collect()


async def everything_is_tried(world: World) -> None:
    await world.others_are_heard()
    await world.try_everything()
    await world.others_are_heard()


def test_one_broker_accepts_messages_after_any_headers(broker):
    played(broker, everything_is_tried)


def test_three_brokers_accept_messages_after_any_headers(three_brokers):
    played(three_brokers, everything_is_tried)


def test_lines_as_large_as_the_broker_takes_end_no_connection_of_the_intake(broker):
    """It adds the id of the batch, and the broker counts headers and closes the connection."""

    async def story(world: World) -> None:
        subject = subjects.lines_of_worker(WORKER)
        await world.say_until_stored(world.worker, subject)
        # The id has all these characters. The intake itself takes nothing that leaves no room for short ones.
        source, most = "s" * NAME_CHARACTERS, world.worker.max_payload - MAX_HEADER_CHARACTERS
        bare = len(lines("1.a.1", WORKER, source=source, text=""))
        largest = lines("1.a.1", WORKER, source=source, text="x" * (most - bare))
        for _ in range(2):
            await world.worker.publish(subject, largest)
            # Whichever connection received the large one passes it on before it hears a later one.
            await world.say_until_stored(world.worker, subject)
        for edge in world.edges:
            await edge.flush(timeout=60)
        assert not any(edge.is_closed for edge in world.edges)

    played(broker, story)


@pytest.mark.full
def test_three_brokers_killed_meanwhile_accept_messages_after_any_headers(three_brokers):
    async def story(world: World) -> None:
        for name in three_brokers.names:
            trying = asyncio.create_task(world.try_everything())
            three_brokers.kill9(name)
            await world.others_are_heard()
            three_brokers.start([name])
            await trying
        await world.others_are_heard()

    played(three_brokers, story)


def test_over_three_brokers_a_repeat_is_stored_once_and_a_worker_learns_whether_its_orders_are_the_newest(
    three_brokers,
):
    async def story(world: World) -> None:
        await world.others_are_heard()
        first, again = await world.say_twice(world.script, subjects.reports(TRIAL))
        assert (again["seq"], again["duplicate"]) == (first["seq"], True)
        stored = await world.operator.jetstream().publish(subjects.orders(WORKER), b"orders")
        hearing = OrderFeed(world.worker, WORKER)
        assert await hearing.is_newest(stored.seq)
        assert not await hearing.is_newest(stored.seq + 1)

    played(three_brokers, story)


def test_only_headers_that_senders_need_are_forwarded():
    id, trace = {"Nats-Msg-Id": "a"}, {"traceparent": "00-1-2-01"}
    order_headers = {BY_SUBJECT: "7", f"{BY_SUBJECT}-Subject": "orders.worker.w1", "Nats-Rollup": "sub"}
    everything = {name: "1" for headers in HEADERS for name in headers} | id | trace | order_headers
    assert forwarded_headers("reports.1.metrics", everything) == id | trace
    assert forwarded_headers("orders.heard.w1", everything) == order_headers
    assert forwarded_headers("reports.1.metrics", {}) is None
    for value in ("a\nNats-Expected-Last-Msg-Id: b", "a\r", "\ufffd", "", "x" * 1000):
        assert forwarded_headers("reports.1.metrics", {"Nats-Msg-Id": value}) is None
