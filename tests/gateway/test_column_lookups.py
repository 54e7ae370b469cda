"""A lookup of columns waits for an answer, and does not overwrite what changes meanwhile."""

import asyncio

from services.catalogue.columns.values import ColumnCache
from services.catalogue.domain import State
from tests.gateway import stories as story


class SlowPeers:
    """Owners that answer once they may, with a loss of 0.5 of each trial."""

    def __init__(self):
        self.lookup_began, self.may_answer = asyncio.Event(), asyncio.Event()

    async def query(self, query):
        self.lookup_began.set()
        await self.may_answer.wait()
        return [[id, {"last": 0.5}] for id in query.trial_ids]


PLAIN_COLUMNS = ["id", "name", "description", "tags", "startTime", "archived", "numTrials", "hp.lr"]


def columns_of(gateway, *ids):
    for id in ids:
        gateway.apply(story.created(id), story.trial_created(10 * id, id))
    return [State(experiments={id: gateway.catalogue.state.experiments[id]}) for id in ids]


def test_what_is_computed_of_the_former_state_is_not_found_in_the_new_one(gateway):
    former, newer = columns_of(gateway, 1, 2)
    cache, peers = ColumnCache(), SlowPeers()

    async def work():
        # Named in any order: some of the others are computed after the answer.
        lookup = asyncio.create_task(cache.lookup(former, peers, ["metric.loss", *PLAIN_COLUMNS]))
        await peers.lookup_began.wait()
        cache.on_reload()
        await cache.lookup(newer, peers, ["state"])
        peers.may_answer.set()
        assert {name: set(values) for name, values in (await lookup).items()} == {
            name: {1} for name in ("metric.loss", *PLAIN_COLUMNS)
        }
        return await cache.lookup(newer, peers, ["metric.loss", *PLAIN_COLUMNS])

    assert {frozenset(values) for values in gateway.run(work()).values()} == {frozenset({2})}


def test_what_is_deleted_while_it_is_asked_about_is_not_kept(gateway):
    (state,) = columns_of(gateway, 1)
    cache, peers = ColumnCache(), SlowPeers()

    async def work():
        lookup = asyncio.create_task(cache.lookup(state, peers, ["metric.loss"]))
        await peers.lookup_began.wait()
        del state.experiments[1]
        cache.on_records_changed([("experiments", 1)])
        peers.may_answer.set()
        return await lookup

    assert gateway.run(work()) == {"metric.loss": {}}
