"""What is passed on, and what is downloaded, takes turns: nobody else waits for all of it."""

from __future__ import annotations

import asyncio
import base64
import io
import os
from collections import Counter

import msgspec
import pytest

from det_contracts.context import Context
from services.web.turns import EVERY, PART_BYTES, Turns
from tests.gateway import stories as story
from tests.gateway.test_stream_places import full
from tests.gateway.test_task_pages import board, task
from tests.gateway.test_tunnels import front

__all__ = ("board", "front", "full", "task")


async def passed_on(turns, who, counted):
    """One that has ever more to send."""
    while True:
        counted[who] += 1
        await turns.take(who)


async def iterations(number):
    """What the loop does for somebody else: so many steps, one after the other."""
    for _ in range(number):
        await asyncio.sleep(0)


def during(number, users):
    async def work():
        turns, counted = Turns(), Counter()
        senders = [asyncio.ensure_future(passed_on(turns, who, counted)) for who in users]
        await iterations(2 * EVERY)
        before = counted.copy()
        await iterations(number)
        for sender in senders:
            sender.cancel()
        await asyncio.wait(senders)
        assert not any(turns._waiting.values()) or turns._armed
        return counted - before

    return asyncio.run(work())


@pytest.mark.parametrize("senders", [1, 200])
def test_an_answer_waits_for_a_part_every_few_steps_however_many_send(senders):
    parts = during(25 * EVERY, ["ann"] * senders)
    assert 20 <= parts["ann"] <= 26


def test_users_take_turns_whatever_number_of_streams_each_has():
    parts = during(100 * EVERY, ["ann"] * 50 + ["bob"])
    assert abs(parts["ann"] - parts["bob"]) <= 2


def test_a_user_has_no_more_turns_with_many_tokens_and_a_runaway_script_leaves_its_owner_some():
    async def work():
        turns, order = Turns(), []

        async def take(user, client):
            await turns.take(user, client)
            order.append((user, client))

        clients = [("mal", f"token {n}") for n in range(4)] + [("ann", "script")] * 4
        clients += [("ann", "ann"), ("bob", "bob")]
        await asyncio.gather(*(take(*client) for client in clients))
        return order

    order = asyncio.run(work())
    # The first finds nobody waiting.
    assert order.index(("bob", "bob")) == 3
    assert order.index(("ann", "ann")) == 5


def test_one_that_goes_takes_no_turn_of_another():
    async def work():
        turns = Turns()
        gone = [asyncio.ensure_future(turns.take("ann")) for _ in range(100)]
        await asyncio.sleep(0)
        for waiter in gone:
            waiter.cancel()
        last = asyncio.ensure_future(turns.take("bob"))
        await iterations(2 * EVERY)
        assert last.done()
        # With nobody waiting the loop is left alone.
        await iterations(2 * EVERY)
        assert not turns._armed

    asyncio.run(work())


def test_where_nobody_else_is_there_a_part_is_passed_on_at_once():
    async def work():
        turns = Turns()
        loop = asyncio.get_running_loop()
        began = loop.time()
        for _ in range(1000):
            await turns.take("ann")
        return loop.time() - began

    assert asyncio.run(work()) < 5.0


@pytest.fixture
def turns(monkeypatch):
    """Who took how many turns."""
    taken, real = Counter(), Turns.take

    async def take(self, user, client=""):
        taken[user] += 1
        await real(self, user, client)

    monkeypatch.setattr(Turns, "take", take)
    return taken


def test_pages_and_uploads_take_turns(gateway, board, turns):
    board.says(b"x" * 1_000_000, kind="text/plain")
    assert len(gateway.send("GET", f"/proxy/{board.id}/x").content) == 1_000_000
    read = turns["determined"]
    assert read >= 1_000_000 // 65_536
    gateway.send("POST", f"/proxy/{board.id}/x", b"y" * 1_000_000)
    assert board.heard[-1][1] == b"y" * 1_000_000
    assert turns["determined"] > read


def test_tunnels_take_turns_in_both_directions(front, turns):
    notebook = front("notebook")

    async def talk():
        async with notebook.joined("x") as socket:
            # What could be packed would be, and be little.
            await socket.send(os.urandom(1_000_000))
            assert len(await socket.recv()) == 1_000_000

    notebook.gateway.run(talk())
    assert turns["determined"] >= 2 * 1_000_000 // 65_536


LARGE = "5b1f0c9e-3b6d-4a51-8c37-0f6f5c1d2e3b"
MEGABYTES = os.urandom(3_000_000)
"""Code and a file, neither of which can be packed."""


@pytest.fixture
def large(full, tmp_path):
    """Experiment 2 has large code, and a trial with a large checkpoint."""
    context = Context(digest="0" * 64, size_bytes=len(MEGABYTES))
    full.backend.blobs.put(context.digest, io.BytesIO(MEGABYTES))
    storage = {"type": "shared_fs", "host_path": str(tmp_path / "checkpoints")}
    made = story.created(2, checkpoint_storage=storage)
    full.apply(msgspec.structs.replace(made, context=context))
    folder = tmp_path / "checkpoints" / LARGE
    folder.mkdir()
    (folder / "large.pt").write_bytes(MEGABYTES)
    full.apply(msgspec.structs.replace(story.stored(1, LARGE, 20), resources={"large.pt": len(MEGABYTES)}))
    return full


@pytest.mark.parametrize(
    ("path", "size"),
    [
        ("/experiments/2/model_def", len(MEGABYTES)),
        ("/api/v1/experiments/2/model_def", len(base64.b64encode(MEGABYTES))),
        (f"/checkpoints/{LARGE}", len(MEGABYTES)),
    ],
    ids=["code", "code in JSON", "files of a checkpoint"],
)
def test_downloads_take_turns(large, turns, path, size):
    answer = large.send("GET", path)
    assert answer.status_code == 200
    assert len(answer.content) >= size
    assert turns["determined"] >= size // PART_BYTES - 4


def test_code_that_is_taken_away_many_times_at_once_arrives_whole_or_is_refused_before_it_begins(large):
    """Before, each part needed a place of its own, and most answers broke off where there was none."""

    async def all_at_once():
        return await asyncio.gather(
            *(large.client.get("/experiments/2/model_def") for _ in range(64)),
        )

    answers = large.run(all_at_once())
    whole = [answer for answer in answers if answer.status_code == 200]
    assert all(answer.content == MEGABYTES for answer in whole)
    # Four at once, and sixteen wait for their turn.
    assert len(whole) == 20
    assert {answer.status_code for answer in answers} == {200, 429}
    assert large.backend.limits.code_downloads.active == 0
    assert large.send("GET", "/experiments/2/model_def").status_code == 200
