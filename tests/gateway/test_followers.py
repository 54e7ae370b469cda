"""Many who follow one log: it is read once for all, they take turns, and who is slow loses nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
from types import SimpleNamespace

import pytest

from det_contracts import queries, reports, subjects
from services.kit.log import Draft
from services.live import tails
from services.live.follow import Follower
from services.live.turns import AT_ONCE, Turns
from services.rest_routes.change_stream import trial_ended
from tests.gateway import stories as story
from tests.gateway.talking import say

FOLLOWERS = 300


@pytest.fixture
def reads(talking):
    """How often LOGS was opened."""
    opened = []
    read = talking.journal.read

    def noted(stream, **options):
        if stream == subjects.LOGS:
            opened.append(options["after"])
        return read(stream, **options)

    talking.journal.read = noted
    return opened


def follower(gateway, rendered=None, user="ann"):
    def render(line):
        if rendered is not None:
            rendered.append(line.id)
        return json.dumps(line.text).encode() + b"\n"

    return Follower(
        gateway.backend.followed_logs,
        queries.LogPage(task_id="1.r1", text=user if user == "mal" else ""),
        user=user,
        is_over=trial_ended(1),
        holds=gateway.catalogue.waiters.holds,
        recheck=lambda: None,
        render=render,
        kind="text",
    )


async def whole(log_follower):
    return [json.loads(text) for text in b"".join([page async for page in log_follower.lines()]).splitlines()]


async def attached(gateway, count):
    while len(gateway.backend.followed_logs.tails) < count:
        await asyncio.sleep(0)


async def end(gateway):
    await gateway.append(story.allocation_ended(1), story.trial_ended(1))


def test_a_log_is_read_and_written_once_for_all_who_follow_it(talking, reads):
    talking.run(say(talking, 0, "old"))
    rendered = []

    async def work():
        tasks = [asyncio.create_task(whole(follower(talking, rendered))) for _ in range(FOLLOWERS)]
        await attached(talking, FOLLOWERS)
        rendered.clear()
        for number in range(1, 11):
            await say(talking, number, f"line {number}")
            await asyncio.sleep(0.001)
        await end(talking)
        return await asyncio.gather(*tasks)

    received = talking.run(work())
    expected = ["old", *(f"line {number}" for number in range(1, 11))]
    assert all(lines == expected for lines in received)
    # While it grew. At its end nothing was left.
    assert len(reads) == 1
    assert len(rendered) == len(set(rendered)) == 10
    assert not talking.backend.followed_logs.tails._readers


def test_who_is_slow_reads_again_what_was_stored_meanwhile(talking, reads, monkeypatch):
    monkeypatch.setattr(tails, "MAX_BATCHES", 3)

    async def work():
        slow = follower(talking).lines()
        await say(talking, 0, "0")
        first = await anext(slow)
        quick = asyncio.create_task(whole(follower(talking)))
        await attached(talking, 1)
        waiting = asyncio.create_task(anext(slow))
        await attached(talking, 2)
        for number in range(1, 30):
            await say(talking, number, str(number))
            await asyncio.sleep(0.001)
        await end(talking)
        pages = [first, await waiting] + [page async for page in slow]
        return [json.loads(text) for text in b"".join(pages).splitlines()], await quick

    slow, quick = talking.run(work())
    assert slow == quick == [str(number) for number in range(30)]


GOOD = {"task_id": "1.r1", "allocation_id": "1.r1.1", "worker_id": "w-1", "source": "task", "offset": 900}
DAMAGED = {
    "no JSON": b"{",
    "no batch": b"[1]",
    "no text": b"\xff\xfe",
    "bytes that are no text": b'{"task_id": "\xff"}',
    "half a character": json.dumps(GOOD | {"lines": [[1.0, "stdout", None, None, "\ud800"]]}).encode(),
    "too deep": b"[" * 100_000,
    "too deep where it should be a name": json.dumps(GOOD).encode().replace(b'"task"', b"[" * 5000),
    "lines of another task": json.dumps(GOOD | {"task_id": "2.r1", "lines": []}).encode(),
    "more lines than a batch has": json.dumps(
        GOOD | {"lines": [[1.0, "stdout", None, None, "x"]] * (reports.MAX_LINES_PER_BATCH + 1)}
    ).encode(),
    "a place that is none": json.dumps(GOOD | {"offset": 1e400, "lines": []}).encode(),
}


@pytest.mark.parametrize("body", DAMAGED.values(), ids=DAMAGED)
def test_what_cannot_be_read_ends_nobodys_stream(talking, body):
    """It is passed over where it comes live, where it lies in the log, and at the end."""

    async def damage():
        where = subjects.logs("1.r1")
        await talking.journal.append(Draft(where, body, f"bad-{len(talking.journal.streams[subjects.LOGS])}"))

    async def work():
        await say(talking, 0, "stored")
        talking.stored_through = 1
        await damage()
        await say(talking, 1, "in the log")
        tasks = [asyncio.create_task(whole(follower(talking))) for _ in range(3)]
        await attached(talking, 3)
        await damage()
        await say(talking, 2, "live")
        while talking.backend.followed_logs.tails._readers["1.r1"].position < 5:
            await asyncio.sleep(0)
        await damage()
        await say(talking, 3, "last")
        await end(talking)
        received = await asyncio.gather(*tasks)
        return received, await whole(follower(talking))

    received, after = talking.run(work())
    assert [*received, after] == [["stored", "in the log", "live", "last"]] * 4
    skipped = {reading.name: reading.values for reading in talking.backend.followed_logs.tails.readings()}
    assert skipped["log_batches_skipped"][()] >= 3


def test_what_waits_for_all_who_are_slow_is_bounded(talking, reads, monkeypatch):
    """Also where each of them follows another log."""
    monkeypatch.setattr(tails, "MAX_BUFFERED_BYTES", 3000)
    talking.apply(*(event for id in (2, 3, 4) for event in (story.trial_created(id), *story.running(id))))
    shared = talking.backend.followed_logs.tails

    async def work():
        async with contextlib.AsyncExitStack() as stack:
            ids = ("1.r1", "2.r1", "3.r1", "4.r1")
            slow = [await stack.enter_async_context(shared.tail(id, trial_ended(int(id[0])))) for id in ids]
            most = 0
            for number in range(40):
                for id in ids:
                    await say(talking, number, "x" * 500, task=id)
                await asyncio.sleep(0.001)
                most = max(most, shared._buffer_usage.bytes)
            assert any(tail.overflowed for tail in slow)
            # Who was told so holds nothing; the first batch of each is taken whatever there is.
            assert 0 < most < 3000 + 4 * 1000
        assert shared._buffer_usage.bytes == 0

    talking.run(work())


def test_those_who_are_woken_together_go_on_a_few_at_a_time():
    async def work():
        turns, done, each = Turns(), [], []

        async def take_turn():
            await turns.take()
            done.append(None)

        tasks = [asyncio.create_task(take_turn()) for _ in range(500)]
        gone = [tasks[n] for n in range(100, 200)]
        await asyncio.sleep(0)
        for task in gone:
            task.cancel()
        while not all(task.done() for task in tasks):
            before = len(done)
            await asyncio.sleep(0)
            each.append(len(done) - before)
        assert len(done) == 400
        # Nobody who went away took a turn.
        assert max(each) <= 2 * AT_ONCE
        assert len([count for count in each if count]) <= 400 / AT_ONCE + 2

    asyncio.run(work())


def test_a_user_with_many_followed_logs_leaves_reads_to_others(talking):
    async def work():
        reads, unanswered = talking.backend.followed_logs.reads, asyncio.Event()
        real = talking.backend.followed_logs.peers.log_page

        async def slow(query, limit):
            if query.text == "mal":
                await unanswered.wait()
            return await real(query, limit=limit)

        talking.backend.followed_logs.peers = SimpleNamespace(log_page=slow)
        crowd = [asyncio.create_task(anext(follower(talking, user="mal").lines())) for _ in range(50)]
        while reads.queued < 40:
            await asyncio.sleep(0)
        await anext(follower(talking, user="ann").lines())
        assert not any(reader.done() for reader in crowd)
        unanswered.set()
        await asyncio.gather(*crowd)

    talking.run(work())
