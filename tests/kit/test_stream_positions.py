"""How far a service has folded: where its state is loaded anew, not as far as it was before."""

import asyncio
from types import SimpleNamespace

import pytest

from det_contracts import subjects
from det_contracts.problems import Refused
from services.kit.awaitable_position import AwaitablePosition
from services.kit.host import answer_at
from services.kit.stream_positions import StreamPositions


class Folding:
    """One service that reads two streams."""

    def __init__(self):
        self.admitted = AwaitablePosition()
        standstill = SimpleNamespace(failed=None)
        self.reached = StreamPositions("toy", (subjects.CONTROL, subjects.REPORTS), self.admitted, standstill)
        self.load(0, 0)

    def load(self, control, reports):
        self.positions = {subjects.CONTROL: control, subjects.REPORTS: reports}
        self.reached.begin(self.positions)

    def fold(self, stream, position):
        self.positions[stream] = position
        self.reached.advance(stream, position)


@pytest.fixture
def folding():
    return Folding()


def test_it_is_behind_until_each_stream_is_folded_as_far_as_before(folding):
    assert not folding.reached.is_behind
    folding.fold(subjects.CONTROL, 10)
    folding.fold(subjects.REPORTS, 7)
    assert not folding.reached.is_behind
    folding.load(4, 9)
    assert folding.reached.is_behind
    folding.fold(subjects.CONTROL, 6)
    # What was reached first counts, however often the state is loaded.
    folding.load(6, 3)
    folding.fold(subjects.CONTROL, 12)
    assert folding.reached.is_behind
    folding.fold(subjects.REPORTS, 9)
    assert not folding.reached.is_behind
    # Another replica had saved more.
    folding.load(20, 20)
    assert not folding.reached.is_behind


def test_what_was_admitted_is_not_folded_until_it_is_folded_again(folding):
    async def work():
        folding.admitted.advance(5)
        await folding.reached.wait_for_position(5, 60, subjects.WITNESS)
        folding.load(0, 0)
        with pytest.raises(Refused, match="toy is at position 0 of WITNESS, not yet at 5"):
            await folding.reached.wait_for_position(5, 0.01, subjects.WITNESS)
        folding.admitted.advance(5)
        await folding.reached.wait_for_position(5, 60, subjects.WITNESS)

    asyncio.run(work())


class Reloading:
    """A runner whose state is loaded anew while the records of its first answer are."""

    def __init__(self):
        self.positions, self.count = {subjects.CONTROL: 7}, 0

    async def wait_for_position(self, position, stream):
        self.positions[stream] = max(position, self.positions[stream])

    async def answer(self, query):
        self.count += 1
        if self.count == 1:
            self.positions[subjects.CONTROL] = 3
        return f"{query} at {self.positions[subjects.CONTROL]}"


def test_an_answer_is_never_of_an_earlier_state_than_was_asked_for():
    answer = asyncio.run(answer_at(Reloading(), "trials", subjects.CONTROL, 6))
    assert answer == (6, "trials at 6")
    # Whoever asks for no position takes what there is.
    assert asyncio.run(answer_at(Reloading(), "trials", subjects.CONTROL, 0)) == (3, "trials at 3")
