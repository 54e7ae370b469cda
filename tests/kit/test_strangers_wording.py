"""Whatever a stranger writes for a subject or for headers, whoever listens hears that message and the next.

What lies in a stream comes again after every start: a message that ends its reader once ends it for ever.
"""

import asyncio
import contextlib

import pytest

from det_contracts import subjects
from services.kit.connection import close, connect
from services.kit.credentials import trial_inbox, worker_inbox
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.settings import ServiceSettings

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

HEADERS = {
    "a status that is no text": b"NATS/1.0 \xff\xfe\xfd\r\n\r\n",
    "a description that is no text": b"NATS/1.0 100 \xff\xfe\xfd\r\n\r\n",
    "a first line without an end": b"NATS/1.0",
    "one byte": b"X",
    "empty lines": b"\r\n\r\n",
    "no headers": b"NATS/1.0\r\n\r\n",
    "a value that is no text": b"NATS/1.0\r\nA: \xff\xfe\r\n\r\n",
    "a name that is no text": b"NATS/1.0\r\n\xff: a\r\n\r\n",
    "no colon": b"NATS/1.0\r\nabc\r\n\r\n",
    "no end": b"NATS/1.0\r\nA: b",
    "a folded line": b"NATS/1.0\r\nA: b\r\n c\r\n\r\n",
    "many lines": b"NATS/1.0\r\n" + b"a:b\r\n" * 12_000 + b"\r\n",
    "a long line": b"NATS/1.0\r\nA: " + b"b" * 65_000 + b"\r\n\r\n",
    "a trace that is none": b"NATS/1.0\r\ntraceparent: " + b"\xff" * 300 + b"\r\n\r\n",
    **{
        f"the broker's own status {status.decode()}": b"NATS/1.0 " + status + b"\r\n\r\n"
        for status in (b"100", b"100 Idle Heartbeat", b"404 No Messages", b"408 Request Timeout", b"503")
    },
}
SUBJECTS = {
    "no text": b"\xff",
    "a vertical tab": b"a\x0bb",
    "a form feed": b"a\x0cb",
    "nothing": b"a\x00b",
    "a control character": b"a\x85b",
    "a wildcard": b"*",
    "all": b">",
    "long": b"x" * 3_000,
    "deep": b".".join([b"a"] * 300),
    "a line separator": "a\u2028b".encode(),
}
TRIAL, WORKER = "12", "w1"
BY_TRIAL = [f"ask.trial.{TRIAL}.searcher.news", subjects.witness_of_trial(TRIAL), subjects.reports(12)]
BY_WORKER = [
    f"ask.worker.{WORKER}.scheduler.holder",
    subjects.witness_of_worker(WORKER),
    subjects.lines_of_worker(WORKER),
    subjects.heartbeat(WORKER),
    subjects.health_sign("worker", WORKER),
]
BEGIN = {TRIAL: f"ask.trial.{TRIAL}.searcher.begin", WORKER: f"ask.worker.{WORKER}.scheduler.begin"}
ANY_ENDING = {TRIAL: [f"ask.trial.{TRIAL}.", f"reports.{TRIAL}."], WORKER: [f"ask.worker.{WORKER}."]}


async def say(connection, subject, headers=b""):
    """Publish as no client library would."""
    if headers:
        line = b"HPUB %s %d %d\r\n%s%s\r\n" % (subject, len(headers), len(headers) + 1, headers, b"x")
    else:
        line = b"PUB %s %d\r\n%s\r\n" % (subject, 1, b"x")
    await connection._send_command(line)
    await connection.flush()


async def all_of(script, worker):
    """Everything that is to be said, and how often: on subjects that are heard at once, and those stored."""
    for sender, fixed in ((script, BY_TRIAL), (worker, BY_WORKER)):
        for subject in fixed:
            for block in HEADERS.values():
                await say(sender, subject.encode(), block)
    for sender, beginnings in zip((script, worker), ANY_ENDING.values(), strict=True):
        for beginning in beginnings:
            for ending in SUBJECTS.values():
                await say(sender, beginning.encode() + ending)
    return len(HEADERS) * len(BY_TRIAL + BY_WORKER) + 3 * len(SUBJECTS)


def test_no_subject_and_no_header_stops_a_listener(broker, tmp_path):
    path = tmp_path / "operator.creds"
    path.write_text(broker.authority.operator())
    settings = ServiceSettings(nats_url=broker.url, nats_credentials=path)

    async def work():
        async with contextlib.AsyncExitStack() as stack:
            listening = await connect(settings, "listening")
            stack.push_async_callback(close, listening)
            await ensure_streams(listening.jetstream())
            script = await broker.connect(broker.trial_credentials(12), inbox_prefix=trial_inbox(12))
            stack.push_async_callback(script.close)
            worker = await broker.connect(broker.authority.worker(WORKER), inbox_prefix=worker_inbox(WORKER))
            stack.push_async_callback(worker.close)
            heard, begun = 0, set()

            async def on_message(message):
                nonlocal heard
                if message.subject in BEGIN.values():
                    begun.add(message.subject)
                else:
                    heard += 1

            for pattern in ("ask.>", "heartbeat.>", "health.sign.>", "witness.>", "reports.>"):
                await listening.subscribe(pattern, cb=on_message)
            await listening.flush()
            # What is the first that an account says to another can be lost on a busy machine, if nobody waits
            # for an answer: the broker joins the two beside everything else.
            async with asyncio.timeout(60):
                for who, subject in BEGIN.items():
                    while subject not in begun:
                        await say({TRIAL: script, WORKER: worker}[who], subject.encode())
                        await asyncio.sleep(0.05)
            sent = await all_of(script, worker)
            async with asyncio.timeout(60):
                while heard < sent:
                    await asyncio.sleep(0.01)
            assert heard == sent
            assert listening.stats["reconnects"] == 0
            await all_are_read(listening)

    asyncio.run(work())


async def all_are_read(connection):
    log = JetStreamLog(connection)
    for subject in ("witness.trial.1", "reports.1.metrics"):
        # Streams store in order: with this one all before it are stored.
        held = (await connection.jetstream().publish(subject, b"last")).seq
        stream = subjects.stream_of(subject)
        assert held >= len(HEADERS)
        async with log.read(stream, after=0) as feed, asyncio.timeout(60):
            read = 0
            while read < held:
                read += len((await feed.batch()).messages)
        assert read == held
