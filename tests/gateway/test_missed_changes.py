"""What a page that comes back is told about the time that it was away."""

import asyncio
import types

import msgspec
import pytest

from services.kit.awaitable_position import AwaitablePosition
from services.live import channel
from services.live.channel import Live


@pytest.fixture
def gateway():
    """The channel of a gateway at position 100, its catalogue, and the position of its saver."""

    async def wait_for_position(position):
        pass

    catalogue = types.SimpleNamespace(state=None, position=100, wait_for_position=wait_for_position)
    folded = AwaitablePosition(100)
    return Live(catalogue, None, folded), catalogue, folded


def missed_topics(live, after):
    async def first_event():
        events = live.events(["experiments", "workspaces"], after=after)
        event = await anext(events)
        await events.aclose()
        return msgspec.json.decode(event.partition(b"data: ")[2])["topics"]

    return asyncio.run(first_event())


def test_a_state_that_is_loaded_again_counts_from_where_it_was_loaded(gateway):
    """Its listeners are called before the catalogue has the position that it was loaded with."""
    live, catalogue, folded = gateway
    live.start_recording()
    catalogue.position = folded.position = 121
    live.notify_changes([("workspaces", 1)])
    # Another replica had saved more than this one had folded.
    folded.position = 160
    live.notify_changes([("workspaces", 2)])
    catalogue.position = 186
    assert missed_topics(live, after=121) == ["workspaces"]
    assert missed_topics(live, after=160) == []


def test_only_so_many_topics_of_the_past_are_remembered(gateway, monkeypatch):
    monkeypatch.setattr(channel, "MAX_PAST_TOPICS", 6)
    live, catalogue, folded = gateway
    for folded.position in range(101, 111):
        # A topic of each, and the list that all are in.
        live.notify_changes([("experiments", 2 * folded.position), ("experiments", 2 * folded.position + 1)])
    catalogue.position = 110
    assert [len(topics) for _, topics in live._past] == [3, 3]
    # Of what is forgotten, a page is told everything.
    assert missed_topics(live, after=107) == ["experiments", "workspaces"]
    assert missed_topics(live, after=108) == ["experiments"]
    live.notify_reload()
    live.notify_changes([("experiments", 1)])
    assert [len(topics) for _, topics in live._past] == [2]


def test_what_changed_before_a_state_is_loaded_again_is_not_known(gateway):
    """Nothing tells of what is gone, such as the last template: no record of the new state is one."""
    live, catalogue, folded = gateway
    live.start_recording()

    async def open_page():
        events = live.events(["templates"], after=100)
        assert b'{"topics":[]}' in await anext(events)
        folded.position = 160
        live.notify_reload()
        catalogue.position = 160
        event = await anext(events)
        await events.aclose()
        return event

    assert b'{"topics":["templates"]}' in asyncio.run(open_page())
    assert missed_topics(live, after=121) == ["experiments", "workspaces"]
    assert missed_topics(live, after=160) == []
