"""Who asks without end is not heard, at the cost of skipping bytes; nobody else is kept waiting."""

import asyncio
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from det_contracts import subjects
from det_contracts.script_queries import AskOperations
from services.kit.bus import BusServer
from services.kit.connection import connect
from services.kit.credentials import trial_inbox
from services.kit.flood_filter import COST_BYTES, MAX_COST, WINDOW_S, FloodFilter
from services.kit.script_requests import serve_scripts
from services.kit.settings import ServiceSettings


def question(trial, body=b"{}", name=b"searcher.news"):
    return b"MSG ask.trial.%d.%s 1 _R_.x %d\r\n%s\r\n" % (trial, name, len(body), body)


def with_headers(trial, body=b"{}"):
    head = b"NATS/1.0\r\nA: MSG ask.trial.1.x 1 5\r\n\r\n"
    return b"HMSG ask.trial.%d.searcher.news 1 _R_.x %d %d\r\n%s%s\r\n" % (
        trial,
        len(head),
        len(head) + len(body),
        head,
        body,
    )


OTHERS = (b"PING\r\n", b"PONG\r\n", b"+OK\r\n", b"-ERR 'Slow Consumer'\r\n", b'INFO {"a":"MSG b 1 5"}\r\n')
FRAMES = st.one_of(
    st.sampled_from(OTHERS),
    st.builds(question, st.integers(1, 3), st.binary(max_size=30)),
    st.builds(question, st.integers(1, 3), st.just(b"PING\r\nMSG ask.trial.9.a 1 3\r\n")),
    st.builds(with_headers, st.integers(1, 3), st.binary(max_size=30)),
)


@settings(deadline=None)
@given(st.lists(FRAMES, max_size=40), st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_however_the_bytes_arrive_whole_frames_are_kept_and_the_same_ones(frames, sizes):
    counted, expected = dict.fromkeys(range(4), 0), []
    for frame in frames:
        trial = 0 if frame in OTHERS else int(frame.split(b".")[2])
        counted[trial] += 1
        if not trial or counted[trial] <= 5:
            expected.append(frame)
    data, passed, at = b"".join(frames), b"", 0
    filter = FloodFilter(max_cost=5)
    while at < len(data):
        size = sizes[at % len(sizes)]
        passed += filter.keep(data[at : at + size])
        at += size
    assert passed == b"".join(expected)


def test_a_sender_is_heard_again_in_the_next_window():
    now = [0.0]
    filter = FloodFilter(clock=lambda: now[0])
    assert filter.keep(question(1) * 5000) == question(1) * MAX_COST
    # All questions of a trial count together; another trial has its own.
    assert filter.keep(question(1, name=b"searcher.best_validation")) == b""
    assert filter.keep(question(2)) == question(2)
    now[0] = WINDOW_S
    assert filter.keep(question(1)) == question(1)


@pytest.mark.parametrize(
    "subject", [b"heartbeat.%s", b"health.sign.worker.%s", b"ask.worker.%s.scheduler.holder"]
)
def test_each_worker_has_a_share_of_its_own(subject):
    def frame(worker):
        return b"MSG " + subject % worker + b" 1 2\r\n[]\r\n"

    filter = FloodFilter()
    assert filter.keep(frame(b"w1") * 5000) == frame(b"w1") * MAX_COST
    assert filter.keep(frame(b"w2")) == frame(b"w2")


def test_large_messages_cost_more():
    large = question(1, b"x" * 100 * COST_BYTES)
    assert len(FloodFilter().keep(large * 20)) == len(large) * (MAX_COST // 101)


def test_half_a_frame_is_forgotten_with_its_connection():
    filter = FloodFilter()
    filter.keep(question(1, b"x" * 100)[:60])
    filter.reset()
    filter.keep(b"MSG ask.tri")
    filter.reset()
    assert filter.keep(question(2)) == question(2)


@pytest.mark.live
def test_beside_a_script_that_asks_without_end_another_is_answered(broker, tmp_path):
    """Before, every question became a task: a service lost its lease, its feed and its connection."""
    credentials = tmp_path / "searcher.creds"
    credentials.write_text(broker.authority.service("searcher"))
    place = ServiceSettings(
        nats_url=broker.url, nats_credentials=credentials, database_url=f"sqlite:///{tmp_path}/x"
    )
    looked_at = {12: 0, 13: 0}

    async def answer(trial, question):
        looked_at[trial] += 1

    async def work():
        own = await connect(place, "searcher")
        strangers = await connect(place, "searcher for strangers", filter=FloodFilter())
        server = BusServer(own, "searcher", stranger_connection=strangers)
        await serve_scripts(server, {AskOperations: answer})
        await strangers.flush()
        mine, other = [
            await broker.connect(broker.trial_credentials(trial), inbox_prefix=trial_inbox(trial).encode())
            for trial in (12, 13)
        ]
        body = msgspec.json.encode(AskOperations(run=1))
        for _ in range(20):
            for _ in range(1000):
                await mine.publish(
                    subjects.question_of_trial(12, "searcher", "news"), body, reply="_INBOX.12.x"
                )
            answered = await other.request(
                subjects.question_of_trial(13, "searcher", "news"), body, timeout=60
            )
            assert json.loads(answered.data)["problem"] is None
        await mine.flush(60)
        for connection in (mine, other, strangers, own):
            await connection.close()

    asyncio.run(work())
    # The number of windows that the test took.
    assert looked_at[12] % MAX_COST == 0
    assert looked_at[12] < 10_000
    assert looked_at[13] == 20
