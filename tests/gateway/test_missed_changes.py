"""What a page that comes back is told about the time that it was away."""

import asyncio
import types

import msgspec

from services.kit.awaitable_position import AwaitablePosition
from services.live.channel import Live


def missed_topics(live, after):
    async def first_event():
        events = live.events(["experiments", "workspaces"], after=after)
        event = await anext(events)
        await events.aclose()
        return msgspec.json.decode(event.partition(b"data: ")[2])["topics"]

    return asyncio.run(first_event())


def test_a_state_that_is_loaded_again_counts_from_where_it_was_loaded():
    """Its listeners are called before the catalogue has the position that it was loaded with."""

    async def wait_for_position(position):
        pass

    catalogue = types.SimpleNamespace(state=None, position=100, wait_for_position=wait_for_position)
    folded = AwaitablePosition(100)
    live = Live(catalogue, None, folded)
    live.start_recording()
    catalogue.position = folded.position = 121
    live.notify_changes([("workspaces", 1)])
    # Another replica had saved more than this one had folded.
    folded.position = 160
    live.notify_changes([("workspaces", 2)])
    catalogue.position = 186
    assert missed_topics(live, after=121) == ["workspaces"]
    assert missed_topics(live, after=160) == []
