"""Many who follow one log: it is read once for all, they take turns, and who is slow loses nothing."""

from __future__ import annotations

import asyncio
import json

import pytest

from det_contracts import queries, subjects
from services.gateway.determined.watching import trial_over
from services.live import tails
from services.live.follow import Follower
from services.live.turns import AT_ONCE, Turns
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


def follower(gateway, rendered=None):
    def render(line):
        if rendered is not None:
            rendered.append(line.id)
        return json.dumps(line.text).encode() + b"\n"

    return Follower(
        gateway.backend.following,
        queries.LogPage(task_id="1.r1"),
        state=lambda: gateway.catalogue.state,
        is_over=trial_over(1),
        recheck=lambda: None,
        render=render,
        kind="text",
    )


async def whole(one):
    return [json.loads(text) for text in b"".join([page async for page in one.lines()]).splitlines()]


async def attached(gateway, count):
    while len(gateway.backend.following.tails) < count:
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

    found = talking.run(work())
    expected = ["old", *(f"line {number}" for number in range(1, 11))]
    assert all(lines == expected for lines in found)
    # Once while it grew, and once more at its end.
    assert len(reads) == 2
    assert len(rendered) == len(set(rendered)) == 10
    assert not talking.backend.following.tails._readers


def test_who_is_slow_reads_again_what_was_stored_meanwhile(talking, reads, monkeypatch):
    monkeypatch.setattr(tails, "LONGEST", 3)

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


def test_those_who_are_woken_together_go_on_a_few_at_a_time():
    async def work():
        turns, done, each = Turns(), [], []

        async def one():
            await turns.take()
            done.append(None)

        tasks = [asyncio.create_task(one()) for _ in range(500)]
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
