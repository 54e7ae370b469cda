"""A state that is loaded anew lacks what was not saved yet, and nothing of that is taken for gone or over."""

import asyncio
import json

import msgspec
import pytest

from det_contracts import queries, subjects
from det_contracts.events import scheduler, searcher
from det_contracts.problems import Refused
from services.catalogue.waiters import Fact
from services.kit.roots import PageFault
from services.live.follow import Follower
from services.rest_routes.change_stream import trial_ended
from tests.gateway import stories as story
from tests.gateway.talking import say


@pytest.fixture
def unsaved(gateway):
    """A gateway that saves nothing from here on."""
    gateway.apply(story.worker_here(), story.worker_here("w-2"), story.created(1))
    gateway.runner._saver._is_leader = lambda: False
    return gateway


async def fold(gateway, *events):
    await gateway.append(*events)
    await gateway.runner.wait_for_position(len(gateway.journal.streams[subjects.CONTROL]))


async def load_anew(gateway):
    """Load what was saved; returns once all of the log is folded again."""
    before, end = gateway.runner.state, gateway.catalogue.position
    gateway.runner._on_fault(PageFault("a test wants it"))
    while gateway.runner.state is before:
        await asyncio.sleep(0)
    assert gateway.runner.stream_positions.is_behind
    await gateway.runner.wait_for_position(end)
    assert not gateway.runner.stream_positions.is_behind


def test_a_run_that_has_just_begun_is_still_waited_for(unsaved):
    parts = (scheduler.Part("w-1", (0,), 0), scheduler.Part("w-2", (0,), 1))
    placed = msgspec.structs.replace(story.assigned(1), parts=parts)
    second = msgspec.structs.replace(story.started(1), worker_id="w-2")
    path = "/api/v1/allocations/1.r1.1/resources/1.r1.1-0/rendezvous"

    async def work():
        await fold(unsaved, story.trial_created(1), story.run_requested(1), placed, story.started(1))
        request = asyncio.create_task(unsaved.client.get(path))
        while not len(unsaved.catalogue.waiters):
            await asyncio.sleep(0)
        await load_anew(unsaved)
        await fold(unsaved, second)
        return await request

    answer = unsaved.run(work())
    assert (answer.status_code, answer.json()["rendezvousInfo"]["slots"]) == (200, [1, 1])


def test_a_log_is_followed_beyond_it(unsaved):
    follower = Follower(
        unsaved.backend.followed_logs,
        queries.LogPage(task_id="1.r1"),
        user="ann",
        is_over=trial_ended(1),
        holds=unsaved.catalogue.waiters.holds,
        recheck=lambda: None,
        render=lambda line: json.dumps(line.text).encode() + b"\n",
        kind="text",
    )

    async def lines():
        return b"".join([page async for page in follower.lines()])

    async def work():
        await fold(unsaved, story.trial_created(1), *story.running(1))
        following = asyncio.create_task(lines())
        while not len(unsaved.catalogue.waiters):
            await asyncio.sleep(0)
        await load_anew(unsaved)
        await say(unsaved, 0, "after it")
        await unsaved.append(story.allocation_ended(1), story.trial_ended(1))
        return await following

    assert unsaved.run(work()) == b'"after it"\n'


def test_a_log_does_not_look_complete_where_nobody_can_say_whether_its_task_is_over(gateway):
    gateway.apply(story.worker_here(), story.created(1), story.trial_created(1), *story.running(1))

    def is_over(state):
        if state.experiments[1].notes:
            raise PageFault("a test wants it")
        return False

    follower = Follower(
        gateway.backend.followed_logs,
        queries.LogPage(task_id="1.r1"),
        user="ann",
        is_over=Fact(is_over, (("experiments", 1),)),
        holds=gateway.catalogue.waiters.holds,
        recheck=lambda: None,
        render=lambda line: b"",
        kind="text",
    )

    async def lines():
        return [page async for page in follower.lines()]

    async def work():
        following = asyncio.create_task(lines())
        while not len(gateway.catalogue.waiters):
            await asyncio.sleep(0)
        await gateway.append(searcher.ExperimentRevised(1, {"notes": "x"}, "asked"))
        await following

    with pytest.raises(Refused, match="a test wants it"):
        gateway.run(work())


def test_who_asks_while_it_lacks_something_is_answered_once_it_does_not(unsaved):
    is_there = Fact(lambda state: 7 in state.experiments, (("experiments", 7),))
    is_gone = Fact(lambda state: 7 not in state.experiments, (("experiments", 7),))
    catalogue, positions = unsaved.catalogue, unsaved.runner.stream_positions

    async def work():
        await fold(unsaved, story.created(7))
        before = unsaved.runner.state
        unsaved.runner._on_fault(PageFault("a test wants it"))
        while unsaved.runner.state is before:
            await asyncio.sleep(0)
        assert positions.is_behind
        assert not catalogue.waiters.holds(is_gone)
        gone, there = [asyncio.create_task(catalogue.wait_until(fact)) for fact in (is_gone, is_there)]
        await there
        assert not gone.done()
        gone.cancel()

    unsaved.run(work())
