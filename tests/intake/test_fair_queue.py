"""One sender at the edge slows no other down, and its own order stays."""

import asyncio
from types import SimpleNamespace

import pytest

from det_contracts import subjects
from services.intake.edge import Edge
from services.intake.fair_queue import MAX_QUEUED_BYTES, MAX_QUEUED_BYTES_EACH, FairQueue, sender_of
from services.intake.measures import IntakeMeasures
from services.kit.log_memory import MemoryLog


def test_senders_come_in_turn_and_each_in_its_own_order():
    turns = FairQueue()
    for number in range(3):
        turns.put("a", f"a{number}", 1)
    turns.put("b", "b0", 1)
    turns.put("c", "c0", 1)
    taken = [turns.take() for _ in range(6)]
    assert taken == ["a0", "b0", "c0", "a1", "a2", None]


def test_one_sender_takes_a_part_of_the_room_alone():
    turns = FairQueue()
    assert turns.put("a", 1, MAX_QUEUED_BYTES_EACH)
    assert not turns.put("a", 2, 1)
    for other in range(MAX_QUEUED_BYTES // MAX_QUEUED_BYTES_EACH - 1):
        assert turns.put(f"b{other}", 3, MAX_QUEUED_BYTES_EACH)
    assert not turns.put("late", 4, 1)
    assert turns.take() == 1
    assert turns.put("late", 4, 1)
    assert turns.put("a", 5, MAX_QUEUED_BYTES_EACH - 1)


@pytest.mark.parametrize(
    ("subject", "sender"),
    [
        (subjects.witness_of_trial(12), "trial 12"),
        ("reports.12.loss", "trial 12"),
        ("witness.worker.w1", "worker w1"),
        (subjects.newest_orders_check("w1"), "worker w1"),
        (subjects.lines_of_worker("w1"), "lines w1"),
        ("", "trial "),
    ],
)
def test_whose_a_message_is_its_subject_says(subject, sender):
    assert sender_of(subject) == sender


class Slow:
    """A connection that passes one message on when it is told to."""

    def __init__(self):
        self.heard, self.published = {}, []
        self.go = asyncio.Semaphore(0)
        self.full = asyncio.Event()

    def new_inbox(self):
        return "_INBOX.x"

    async def subscribe(self, pattern, queue="", cb=None, **limits):
        self.heard[pattern] = cb

    async def publish(self, subject, body, reply, headers):
        await self.go.acquire()
        self.published.append(subject)
        if len(self.published) == 3:
            self.full.set()


def test_a_flood_of_one_sender_lets_another_one_through():
    asyncio.run(_flood())


async def _flood():
    connection = Slow()
    edge = asyncio.create_task(Edge(connection, MemoryLog(), IntakeMeasures(subjects.INTAKE)).run())
    while subjects.edge_subject(">") not in connection.heard:
        await asyncio.sleep(0)
    say = connection.heard[subjects.edge_subject(">")]
    for trial in [*[1] * 10_000, 2]:
        subject = subjects.edge_subject(subjects.witness_of_trial(trial))
        await say(SimpleNamespace(subject=subject, data=b"x", reply="", headers=None))
    for _ in range(3):
        connection.go.release()
    await connection.full.wait()
    assert connection.published[:2] == [subjects.witness_of_trial(1), subjects.witness_of_trial(2)]
    edge.cancel()
    await asyncio.gather(edge, return_exceptions=True)
