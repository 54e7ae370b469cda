"""An administrator has the metrics database rebuilt: it is filled from its newest copy, or stays."""

import asyncio

import pytest
import sqlalchemy as sa

from det_contracts import subjects
from det_contracts.events.searcher import ExperimentDeleted
from services.kit.blobs import DirectoryBlobs
from services.kit.conditions import REBUILD_REFUSED
from services.kit.database import SNAPSHOTS
from services.kit.rebuild_requests import BEGUN, DUE, RebuildRows
from services.metrics.copies import rebuilding
from services.metrics.copies.copier import newest_copy
from services.metrics.copies.rebuilding import restore_or_rebuild
from services.metrics.copies.store import CopyStore
from tests.metrics.copies import OWNER, Killed, Store
from tests.metrics.test_copies import Beginning, damage, fill, located, place, save, swap, take_away
from tests.metrics.test_rebuild import QUERIES

__all__ = ["place"]
REQUEST = 10_000
"""Later than everything that a test appends."""
ROWS = RebuildRows(OWNER)


@pytest.fixture
def copied(place):
    """A database with a copy, what came after it, and the place of its copies; a rebuild is due."""

    async def work():
        place.world.add(ExperimentDeleted(9, "DELETED", "its owner wants it"))
        location = str(place.folder)
        await located(place)
        fill(place)
        await place.copy()
        fill(place, start=40)
        return location

    place.location = asyncio.run(work())
    ask_for_rebuild(place)
    return place


def ask_for_rebuild(place, request=REQUEST):
    with place.tables.database.engine.begin() as connection:
        ROWS.mark_due(connection, request)


def due(place):
    return place.tables.database.read_sync(ROWS.due)


def content(place):
    """All rows, but for those that say which rebuild is due and which was served."""
    rows = place.rows()
    return rows | {"snapshots": [row for row in rows["snapshots"] if not {BEGUN, DUE} & set(row)]}


def answers(place):
    return [place.tables.ask(query) for query in QUERIES]


def start(place, location=None):
    """What a process does before it reads the log; returns it, and whether it filled its database."""
    begun = Beginning(place, place.location if location is None else location)
    return begun, asyncio.run(restore_or_rebuild(begun.restoration))


def read_on(place):
    """Continue with the log from where the database says."""
    place.world.state, stored = place.tables.state()
    place.world.at = dict.fromkeys(place.world.streams, 0) | stored
    place.world.unsaved, place.world.dirty = [], set()
    save(place)


def spoil(place):
    """What a rebuild is for: the database says what the log does not."""
    with place.tables.database.engine.begin() as connection:
        for table in ("summaries", "chunks", "columns", "log_chunks"):
            assert connection.execute(sa.text(f"DELETE FROM {table}")).rowcount
        is_state = SNAPSHOTS.c.kind.not_in((BEGUN, DUE))
        connection.execute(sa.delete(SNAPSHOTS).where(is_state))


def test_a_rebuilt_database_gives_the_same_answers(copied):
    before = answers(copied)
    spoil(copied)
    assert answers(copied) != before
    begun, rebuilt = start(copied)
    assert rebuilt
    assert begun.troubles(REBUILD_REFUSED) == []
    assert due(copied) == 0
    read_on(copied)
    assert answers(copied) == before
    # Once for each request, also for one that is read again behind the copy.
    assert start(copied)[1] is False
    ask_for_rebuild(copied)
    assert due(copied) == 0


def test_a_lost_database_is_not_rebuilt_as_well(copied):
    async def work():
        # The copy was made after the request was saved, and before it was served.
        await copied.copy()

    asyncio.run(work())
    before = answers(copied)
    copied.tables.drop()
    assert start(copied)[1]
    assert due(copied) == 0
    assert answers(copied) == before


@pytest.mark.parametrize("harm", [damage, swap, take_away])
@pytest.mark.parametrize("what", ["page", "manifest"])
def test_a_damaged_copy_is_refused_by_name_and_changes_nothing(copied, harm, what):
    newest = asyncio.run(newest_copy(copied.log, OWNER))
    blobs = DirectoryBlobs(copied.folder)
    keys = [page.key for page in CopyStore(blobs).manifest(newest.fact.copy, OWNER).pages]
    key = newest.fact.copy if what == "manifest" else keys[-1]
    before = content(copied)
    harm(blobs._path(key), blobs._path(keys[0]))
    begun, rebuilt = start(copied)
    assert not rebuilt
    assert content(copied) == before
    (why,) = begun.troubles(REBUILD_REFUSED)
    assert key in why
    # It does not begin by itself once the object is back.
    assert due(copied) == 0
    assert start(copied)[0].troubles(REBUILD_REFUSED) == []


def test_without_the_setting_it_is_refused(copied):
    before = content(copied)
    begun, rebuilt = start(copied, location="")
    assert not rebuilt
    assert content(copied) == before
    assert "STEADFAST_METRICS_STORE is not set" in begun.troubles(REBUILD_REFUSED)[0]


def test_without_a_copy_it_is_refused(place):
    place.world.add(ExperimentDeleted(9, "DELETED", "its owner wants it"))
    fill(place)
    ask_for_rebuild(place)
    begun, rebuilt = start(place, location=str(place.folder))
    assert not rebuilt
    assert "no copy of it has been made yet" in begun.troubles(REBUILD_REFUSED)[0]


def test_what_only_the_database_still_holds_is_not_given_up(copied):
    before = content(copied)
    end = copied.world.at[subjects.REPORTS]
    asyncio.run(copied.log.forget(subjects.REPORTS, end))
    begun, rebuilt = start(copied)
    assert not rebuilt
    assert content(copied) == before
    assert f"REPORTS begins at {end + 1} and the newest copy ends at 15" in begun.troubles(REBUILD_REFUSED)[0]


def test_a_kill_at_any_step_leaves_the_database_and_the_request(copied, monkeypatch):
    before, rows = answers(copied), content(copied)
    countdown, rebuilt = 0, False
    while not rebuilt:

        async def dying(*_, calls=countdown):
            return CopyStore(Store(copied.folder, calls))

        monkeypatch.setattr(rebuilding, "store_of", dying)
        try:
            _, rebuilt = start(copied)
        except Killed:
            assert content(copied) == rows
            assert due(copied) == REQUEST
        countdown += 1
    assert countdown > 5
    # Killed before it read on: the next start finds the request served.
    assert start(copied)[1] is False
    read_on(copied)
    assert answers(copied) == before


def test_a_kill_before_it_is_committed_leaves_the_database_and_the_request(copied, monkeypatch):
    rows, load = content(copied), rebuilding.load_copy

    def killed(connection, store, manifest):
        load(connection, store, manifest)
        raise Killed

    monkeypatch.setattr(rebuilding, "load_copy", killed)
    with pytest.raises(Killed):
        start(copied)
    assert content(copied) == rows
    assert due(copied) == REQUEST


def test_of_two_processes_one_rebuilds(copied):
    begun = Beginning(copied, copied.location)

    async def work():
        works = [await rebuilding._filling(begun.restoration, REQUEST) for _ in range(2)]
        return [await copied.tables.database.write(work) for work in works]

    assert asyncio.run(work()) == [True, False]
