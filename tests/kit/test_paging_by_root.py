"""Records come and go by root: whoever pages, however far behind, holds what a fold from zero holds."""

import asyncio
import contextlib
import dataclasses

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from det_contracts import codec, subjects
from det_contracts.events import searcher, trial
from services.kit.database import METADATA, POSITIONS, SNAPSHOTS, Database
from services.kit.log import Draft
from services.kit.log_memory import MemoryLog
from services.kit.records import read_event
from services.kit.roots import PagedTable, PageFault, get_loaded
from tests.fixtures.paging import GatedLog, page_early, running
from tests.fixtures.waiting import until
from tests.kit.paged_toy import GROUPS, ITEMS, ROOTS, Group, Replica, State, evolve


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    page_early(monkeypatch)


@contextlib.contextmanager
def opened(folder):
    database = Database(f"sqlite:///{folder}/toy.db")
    METADATA.create_all(database.engine, tables=[SNAPSHOTS, POSITIONS])
    with database.engine.begin() as connection:
        connection.execute(sa.delete(SNAPSHOTS))
        connection.execute(sa.delete(POSITIONS))
    yield database
    database.close()


def draft(event, number):
    return Draft(
        codec.subject_of(event), codec.encode(event, id=f"e{number}", actor="t", at=0.0), f"e{number}"
    )


ITEM = st.integers(1, ITEMS)
GROUP = st.integers(1, GROUPS)
EVENTS = st.one_of(
    st.builds(trial.Progressed, ITEM, st.just(1), st.integers(1, 5).map(float)),
    st.builds(trial.PreemptionAcknowledged, ITEM, GROUP),
    st.builds(lambda group: searcher.TrialIdled(group, 1, True, "over"), GROUP),
    st.builds(lambda group: searcher.ExperimentDeleted(group, "DELETED", "gone"), GROUP),
)


def from_zero(log):
    state = State()
    for message in log.streams[subjects.CONTROL]:
        tuple(evolve(state, read_event(message, subjects.CONTROL)))
    return state


def look_at(state, right):
    """All records, loaded as a rule would load them; and what the indexes say of what is loaded."""
    for table in ("groups", "items", "totals"):
        for id in range(1, ITEMS + 1) if table == "items" else [*range(1, GROUPS + 1), "all"]:
            if isinstance(id, str) == (table == "totals"):
                assert getattr(state, table).get(id) == getattr(right, table).get(id), (table, id)
        assert dict(getattr(state, table)) == dict(getattr(right, table))
    assert list(state.items_of) == list(right.items_of)


async def at_rest(log, *replicas):
    """Until everything is folded by all, and nothing is decided any more."""

    def still():
        end = len(log.streams[subjects.CONTROL])
        return all(replica.runner.positions[subjects.CONTROL] == end for replica in replicas)

    for _ in range(5):
        await until(still)
        await asyncio.sleep(0.002)


@given(st.lists(EVENTS, max_size=80), st.lists(EVENTS, max_size=80), st.lists(EVENTS, max_size=40))
@settings(max_examples=15, deadline=None)
def test_a_follower_that_is_behind_ends_with_the_fold_from_zero(tmp_path_factory, before, behind, after):
    async def work(database):
        log, numbers = MemoryLog(), iter(range(1_000))
        gated = GatedLog(log, subjects.CONTROL)
        leader, follower = Replica(database, log, leads=True), Replica(database, gated, leads=False)

        async def all_of(events):
            for event in events:
                await log.append(draft(event, next(numbers)))
                await asyncio.sleep(0)

        async with running(leader, follower):
            await all_of(before)
            await at_rest(log, leader, follower)
            gated.shut(subjects.CONTROL)
            await all_of(behind)
            await at_rest(log, leader)
            await leader.saver.wait_for_position(leader.runner.positions[subjects.CONTROL])
            gated.open(subjects.CONTROL)
            await all_of(after)
            await at_rest(log, leader, follower)
            right = from_zero(log)
            for replica in (leader, follower):
                look_at(replica.runner.state, right)
            await leader.saver.wait_for_position(leader.runner.positions[subjects.CONTROL])
            # Whoever takes over, and whoever starts from the database, too.
            leader.leads, follower.leads = False, True
            follower.runner.on_leadership_change()
            await all_of([trial.Progressed(1, 1, 1.0), searcher.TrialIdled(1 + 1 % GROUPS, 1, True, "")])
            await at_rest(log, leader, follower)
            fresh = Replica(database, log, leads=False)
            async with running(fresh):
                await at_rest(log, fresh)
                right = from_zero(log)
                for replica in (leader, follower, fresh):
                    look_at(replica.runner.state, right)

    with opened(tmp_path_factory.getbasetemp()) as database:
        asyncio.run(work(database))


async def lived(log, database, groups):
    """A leader that has folded so many groups, which are over, and has let go of what it can."""
    leader = Replica(database, log, leads=True)
    async with running(leader):
        for group in range(1, groups + 1):
            await log.append(draft(trial.Progressed(group - 1 or GROUPS, 1, 1.0), f"p{group}"))
            await log.append(draft(searcher.TrialIdled(group, 1, True, ""), f"i{group}"))
        await at_rest(log, leader)
        await leader.saver.wait_for_position(leader.runner.positions[subjects.CONTROL])
        await log.append(draft(trial.Progressed(1, 1, 1.0), "more"))
        await at_rest(log, leader)
        await leader.saver.wait_for_position(leader.runner.positions[subjects.CONTROL])
    return leader


def test_what_is_at_rest_leaves_and_a_start_leaves_it_where_it_is(tmp_path):
    async def work(database):
        log = MemoryLog()
        leader = await lived(log, database, GROUPS)
        assert leader.runner.pager.roots_evicted > 0
        assert len(dict(leader.runner.state.groups)) < GROUPS
        fresh = Replica(database, log, leads=False)
        async with running(fresh):
            await at_rest(log, fresh)
            assert len(dict(fresh.runner.state.groups)) < GROUPS
            assert fresh.runner.pager.roots_loaded == 0
            look_at(fresh.runner.state, from_zero(log))
            assert fresh.runner.pager.roots_loaded > 0

    with opened(tmp_path) as database:
        asyncio.run(work(database))


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(
            lambda away: draft(trial.Progressed(away - 1 or GROUPS, 1, 1.0), "since"), id="as it was later"
        ),
        pytest.param(
            lambda away: draft(searcher.ExperimentDeleted(away, "DELETED", ""), "gone"), id="dropped later"
        ),
    ],
)
def test_a_replica_that_is_behind_does_not_mix_in_what_another_has_saved_since(later, tmp_path):
    """It meets a record as it was later, or one that is gone since: all of the group is loaded again."""

    async def work(database):
        log = MemoryLog()
        gated = GatedLog(log, subjects.CONTROL)
        await lived(log, database, GROUPS)
        behind = Replica(database, gated, leads=False)
        async with running(behind):
            await at_rest(log, behind)
            away = next(
                id for id in range(1, GROUPS + 1) if get_loaded(behind.runner.state.groups, id) is None
            )
            gated.shut(subjects.CONTROL)
            other = Replica(database, log, leads=True)
            async with running(other):
                await log.append(later(away))
                await at_rest(log, other)
                await other.saver.wait_for_position(other.runner.positions[subjects.CONTROL])
            with pytest.raises(PageFault):
                behind.runner.state.groups.get(away)
            gated.open(subjects.CONTROL)
            await at_rest(log, behind)
            look_at(behind.runner.state, from_zero(log))

    with opened(tmp_path) as database:
        asyncio.run(work(database))


def test_who_still_looks_at_a_former_state_is_told_to_look_again(tmp_path):
    """What it has not would be loaded into the present state, and not be found."""

    async def work(database):
        log = MemoryLog()
        await lived(log, database, GROUPS)
        replica = Replica(database, log, leads=False)
        async with running(replica):
            await at_rest(log, replica)
            former = replica.runner.state
            away = next(id for id in range(1, GROUPS + 1) if get_loaded(former.groups, id) is None)
            replica.runner._on_fault(PageFault("a test wants it"))
            await until(lambda: replica.runner.state is not former)
            await at_rest(log, replica)
            assert replica.runner.state.groups.get(away) is not None
            with pytest.raises(PageFault, match="reloaded in the meantime"):
                former.groups.get(away)

    with opened(tmp_path) as database:
        asyncio.run(work(database))


def test_what_was_deleted_is_not_shown_before_its_deletion_is_saved(tmp_path):
    async def work(database):
        log = MemoryLog()
        replica = Replica(database, log, leads=True)
        async with running(replica):
            await log.append(draft(trial.Progressed(1, 1, 2.0), 0))
            await at_rest(log, replica)
            await replica.saver.wait_for_position(replica.runner.positions[subjects.CONTROL])
            (item,) = (await replica.runner.pager.peek([("items", 1)])).values()
            assert item.count == 2.0
            replica.leads = False
            await log.append(draft(searcher.ExperimentDeleted(2, "DELETED", "gone"), 1))
            await at_rest(log, replica)
            assert await replica.runner.pager.peek([("items", 1)]) == {}

    with opened(tmp_path) as database:
        asyncio.run(work(database))


def test_a_table_looks_elsewhere_for_what_it_has_not():
    looked_up = []
    table = PagedTable({1: Group(3.0)}, lambda id: looked_up.append(id) or False)
    assert table[1].total == 3.0
    assert 1 in table
    assert looked_up == []
    assert table.get(2) is None
    assert 3 not in table
    assert table.pop(4, None) is None
    with pytest.raises(KeyError):
        table[5]
    with pytest.raises(KeyError):
        del table[6]
    assert looked_up == [2, 3, 4, 5, 6]


@contextlib.contextmanager
def counted_looks(replica, monkeypatch):
    """What is asked of the database about records, on the loop or in a thread."""
    looks, now, later = [], replica.saver.pages_blocking, replica.saver.query
    monkeypatch.setattr(replica.saver, "pages_blocking", lambda *about: looks.append(about) or now(*about))
    monkeypatch.setattr(replica.saver, "query", lambda *about: looks.append(about) or later(*about))
    yield looks


def test_what_is_not_there_is_looked_for_once(tmp_path, monkeypatch):
    """Neither a root without a record nor a record of an unknown root: not again as the log goes on."""

    async def work(database):
        log = MemoryLog()
        replica = Replica(database, log, leads=True)
        with counted_looks(replica, monkeypatch) as looks:
            async with running(replica):
                await log.append(draft(trial.Progressed(1, 1, 1.0), "begin"))
                await at_rest(log, replica)
                looks.clear()
                # Of neither is anything in the state: the item by its name, the group by what the fold asks.
                for number in range(5):
                    await log.append(draft(trial.PreemptionAcknowledged(ITEMS, 99), f"nothing{number}"))
                    await at_rest(log, replica)
                    assert [replica.runner.state.groups.get(99) for _ in range(100)] == [None] * 100
                assert len(looks) == 2

    with opened(tmp_path) as database:
        asyncio.run(work(database))


def test_what_an_event_begins_is_not_looked_for(tmp_path, monkeypatch):
    begins = dataclasses.replace(
        ROOTS, creation_events={trial.PreemptionAcknowledged: lambda event: ("items", event.trial_id)}
    )

    async def work(database):
        log = MemoryLog()
        replica = Replica(database, log, leads=True, roots=begins)
        with counted_looks(replica, monkeypatch) as looks:
            async with running(replica):
                await log.append(draft(trial.PreemptionAcknowledged(ITEMS, 99), "first"))
                await at_rest(log, replica)
                assert replica.runner.state.items.get(ITEMS) is None
                # For the group, of which the fold alone knows.
                assert len(looks) == 1
                await log.append(draft(trial.Progressed(ITEMS, 1, 1.0), "then"))
                await at_rest(log, replica)
                look_at(replica.runner.state, from_zero(log))

    with opened(tmp_path) as database:
        asyncio.run(work(database))


def test_what_was_not_there_is_found_once_it_was_put_and_has_left_the_memory(tmp_path, monkeypatch):
    """Between the two nobody looks for it: that it is there follows from the fold alone."""

    async def work(database):
        log = MemoryLog()
        replica = Replica(database, log, leads=True)
        async with running(replica):
            for group in range(1, GROUPS + 1):
                assert replica.runner.state.groups.get(group) is None
                assert replica.runner.state.items.get(group - 1 or GROUPS) is None
            for group in range(1, GROUPS + 1):
                await log.append(draft(trial.Progressed(group - 1 or GROUPS, 1, 1.0), f"p{group}"))
                await log.append(draft(searcher.TrialIdled(group, 1, True, ""), f"i{group}"))
            await at_rest(log, replica)
            await replica.saver.wait_for_position(replica.runner.positions[subjects.CONTROL])
            await log.append(draft(trial.Progressed(1, 1, 1.0), "more"))
            await at_rest(log, replica)
            assert replica.runner.pager.roots_evicted > 0
            right = from_zero(log)
            # Items first: as long as it is away nobody knows the group of one.
            assert {id: replica.runner.state.items.get(id) for id in right.items} == right.items
            look_at(replica.runner.state, right)

    with opened(tmp_path) as database:
        asyncio.run(work(database))
