"""The database is copied to an object store, and a lost one continues from the newest copy."""

import asyncio
import os
import random
from types import SimpleNamespace

import msgspec
import pytest

from det_contracts import subjects
from det_contracts.events.searcher import ExperimentDeleted
from det_contracts.metrics_shards import FURTHER_SHARDS
from det_contracts.queries import LogPage, Reports
from services.kit.blobs import DirectoryBlobs
from services.kit.cancellation import cancel_and_wait
from services.kit.conditions import COPY_FAILS, Conditions
from services.kit.log import Draft, FenceLost
from services.kit.log_memory import MemoryLog, matches
from services.kit.migrate import open_database, schema_of
from services.kit.process_metrics import Measures
from services.kit.self_watch import SelfWatch
from services.kit.service import Restoration
from services.kit.service_subjects import published_by
from services.kit.settings import BadSettings, ServiceSettings
from services.kit.snapshot import Snapshot
from services.metrics.copies import pages, restoring
from services.metrics.copies.copier import Copier, newest_copy
from services.metrics.copies.keeping import keep_copies
from services.metrics.copies.restoring import restore, restore_copy
from services.metrics.copies.store import BadCopy, CopyStore, store_of
from services.metrics.domain import State
from services.metrics.reports import chunks
from services.metrics.settings import MetricsSettings
from tests.fixtures.databases import POSTGRESQL_IN_FULL, open_sqlite
from tests.fixtures.lagging_log import LaggingLog
from tests.fixtures.tiers import rest_in_full
from tests.fixtures.waiting import until
from tests.metrics.copies import OWNER, Killed, Place, rows_of
from tests.metrics.test_rebuild import QUERIES, history
from tests.metrics.world import lines, reports, training


@pytest.fixture
def place(world, tables, tmp_path, small, monkeypatch):
    """With chunks and pages that are full with little."""
    monkeypatch.setattr(chunks, "LARGEST", 32)
    monkeypatch.setattr(pages, "SMALLEST", 1000)
    monkeypatch.setattr(pages, "SPREAD", 2)
    # No test has the power fail.
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return Place(world, tables, tmp_path / "copies")


def fill(place, trials=3, count=40, start=0):
    """Reports and lines of some trials, saved."""
    for trial in range(1, trials + 1):
        for at in range(start, start + count, 8):
            steps = range(at, at + 8)
            points = training(steps, loss=[random.Random(s).random() for s in steps])
            place.world.add(reports(points, trial=trial, number=at // 8 + 1, experiment=trial))
            texts = [f"trial {trial} line {at + n}" for n in range(8)]
            place.world.add(lines(*texts, offset=at, task=f"{trial}.a"))
    save(place)


def save(place):
    place.world.fold()
    place.world.decide()
    place.tables.save(place.world)


def test_a_lost_database_continues_from_its_copy(place):
    async def work():
        fill(place)
        whole = place.rows()
        assert all(whole[table] for table in ("chunks", "columns", "log_chunks", "summaries", "snapshots"))
        await place.copy()
        assert await place.restore()
        assert place.rows() == whole
        # What came after it is in the streams.
        fill(place, start=40)
        answers = [place.tables.ask(query) for query in QUERIES]
        await place.restore()
        save(place)
        assert [place.tables.ask(query) for query in QUERIES] == answers

    asyncio.run(work())


def test_every_table_is_copied(place):
    copied = {table.name for table in pages.BY_CONTENT} | {"chunks", "columns", "log_chunks"}
    assert set(place.rows()) == copied | {"alembic_version"}


def test_pages_that_have_not_changed_are_neither_read_nor_stored_again(place):
    async def work():
        fill(place, trials=6, count=64)
        first = await place.copy()
        fill(place, trials=1, count=8, start=64)
        second = await place.copy()
        assert len(second.puts) < len(first.puts) / 2
        whole = place.rows()
        await place.restore()
        assert place.rows() == whole

    asyncio.run(work())


def test_nothing_that_was_deleted_stays_in_the_store(place):
    async def work():
        fill(place)
        await place.copy()
        place.world.add(ExperimentDeleted(2, "DELETED", "its owner wants it", (2,)))
        save(place)
        await place.copy()
        store, newest = CopyStore(DirectoryBlobs(place.folder)), await newest_copy(place.log, OWNER)
        manifest = store.manifest(newest.fact.copy, OWNER)
        assert place.objects() == manifest.keys | {newest.fact.copy}
        stored = [rows for key in manifest.keys for rows in store.page(key)]
        tasks = {
            dict(zip(r.columns, row, strict=True))["task_id"]
            for r in stored
            for row in r.rows
            if "task_id" in r.columns
        }
        assert tasks == {"1.a", "3.a"}

    asyncio.run(work())


def test_a_copy_stays_while_a_backup_of_the_log_may_name_it(place):
    async def copy(at):
        place.now = at
        copier, _ = place.copier(keep_s=100.0)
        await copier.copy_if_due(place.world.at)
        return (await newest_copy(place.log, OWNER)).fact

    async def restored(fact):
        place.tables.drop()
        assert await restore(place.tables.database, CopyStore(DirectoryBlobs(place.folder)), fact)
        return place.rows()

    async def work():
        facts, rows = [], []
        for at in (0.0, 50.0, 120.0):
            fill(place, trials=2, count=16, start=int(at) * 8)
            rows.append(place.rows())
            facts.append(await copy(at))
        assert [await restored(fact) for fact in facts] == rows
        # The first was replaced at 50, the second at 120.
        fill(place, trials=1, count=8, start=1600)
        await copy(160.0)
        assert await restored(facts[1]) == rows[1]
        with pytest.raises(BadCopy, match=facts[0].copy):
            await restored(facts[0])

    asyncio.run(work())


@POSTGRESQL_IN_FULL
@pytest.mark.parametrize("seed", rest_in_full(range(8), 2))
def test_a_kill_at_any_moment_loses_and_doubles_nothing(place, seed):
    """Copies are interrupted at every call, the database is lost, and streams drop what the copy has."""
    chance = random.Random(seed)
    world, tables = place.world, place.tables

    async def work():
        kills = losses = 0
        while any(world.at[s] < len(world.streams[s]) for s in world.streams):
            for _ in range(chance.randint(1, 20)):
                world.step(chance.choice([subjects.REPORTS, subjects.LOGS, subjects.CONTROL]))
            if chance.random() < 0.5:
                world.decide()
            tables.save(world)
            place.now += 1.0
            try:
                await place.copy(chance.choice([None, *range(16)]))
            except Killed:
                kills += 1
            newest = await newest_copy(place.log, OWNER)
            for stream in (subjects.REPORTS, subjects.LOGS):
                await place.log.forget(stream, newest.fact.through.get(stream, 0))
            if chance.random() < 0.3:
                losses += await place.restore()
        return kills, losses

    world.add(*history(chance))
    kills, losses = asyncio.run(work())
    assert kills
    assert losses
    world.fold().decide()
    tables.save(world)
    answers, state = [tables.ask(query) for query in QUERIES], world.dump()
    # As if nothing had ever been copied or lost.
    tables.drop()
    world.restart().fold()
    tables.save(world)
    assert world.dump() == state
    assert [tables.ask(query) for query in QUERIES] == answers
    asyncio.run(place.copy())
    newest = asyncio.run(newest_copy(place.log, OWNER))
    manifest = CopyStore(DirectoryBlobs(place.folder)).manifest(newest.fact.copy, OWNER)
    assert place.objects() == manifest.keys | {newest.fact.copy}


def damage(path, other):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x40
    path.write_bytes(bytes(content))


def swap(path, other):
    path.write_bytes(other.read_bytes())


def take_away(path, other):
    path.unlink()


@pytest.mark.parametrize("harm", [damage, swap, take_away])
@pytest.mark.parametrize("what", ["page", "manifest"])
def test_a_bad_object_is_named_and_the_database_stays_empty(place, harm, what):
    async def work():
        fill(place)
        await place.copy()
        newest = await newest_copy(place.log, OWNER)
        blobs = DirectoryBlobs(place.folder)
        keys = [page.key for page in CopyStore(blobs).manifest(newest.fact.copy, OWNER).pages]
        key = newest.fact.copy if what == "manifest" else keys[-1]
        harm(blobs._path(key), blobs._path(keys[0]))
        place.tables.drop()
        with pytest.raises(BadCopy, match=key):
            await restore(place.tables.database, CopyStore(blobs), newest.fact)
        assert place.tables.database.read_sync(restoring.is_empty)

    asyncio.run(work())


def test_a_copy_whose_manifest_is_gone_is_made_again(place):
    async def work():
        fill(place)
        await place.copy()
        newest = await newest_copy(place.log, OWNER)
        DirectoryBlobs(place.folder).delete(newest.fact.copy)
        fill(place, start=40)
        await place.copy()
        whole = place.rows()
        await place.restore()
        assert place.rows() == whole

    asyncio.run(work())


def test_of_two_processes_that_copy_at_once_one_is_refused(place):
    async def work():
        fill(place)
        first, _ = place.copier()
        second, _ = place.copier()
        announce = first._announce

        async def late(written, fence):
            assert await second.copy_if_due(place.world.at)
            await announce(written, fence)

        first._announce = late
        with pytest.raises(FenceLost):
            await first.copy_if_due(place.world.at)
        whole = place.rows()
        await place.restore()
        assert place.rows() == whole

    asyncio.run(work())


def test_what_a_late_process_removes_is_in_no_later_copy(place):
    """A process that stood still after its announcement removes what its own copy does not need."""

    async def work():
        fill(place)
        await place.copy()
        fill(place, trials=4)
        copier, _ = place.copier()
        removals = []
        copier._remove = removals.append
        await copier.copy_if_due(place.world.at)
        (superfluous,) = removals
        assert superfluous
        # Some tables are again as they were in the first copy.
        place.world.add(ExperimentDeleted(4, "DELETED", "its owner wants it", (4,)))
        save(place)
        await place.copy()
        Copier._remove(copier, superfluous)
        whole = place.rows()
        await place.restore()
        assert place.rows() == whole

    asyncio.run(work())


def test_a_copy_is_due_when_it_is_old_or_half_of_a_stream_is_not_in_it(place):
    async def due(saved):
        copier, _ = place.copier(interval_s=100.0)
        return await copier._is_due(await newest_copy(place.log, OWNER), saved)

    async def work():
        place.now = 1000.0
        fill(place, count=80)
        assert await due(place.world.at)
        await place.copy()
        place.now += 99
        fill(place, trials=1, count=8, start=80)
        assert not await due(place.world.at)
        place.now += 1
        assert await due(place.world.at)
        place.now -= 1
        await place.log.forget(subjects.REPORTS, 28)
        assert not await due(place.world.at)
        await place.log.forget(subjects.REPORTS, 30)
        assert await due(place.world.at)
        assert not await due(dict.fromkeys(place.world.at, 0))

    asyncio.run(work())


def test_messages_that_were_dropped_before_they_were_copied_are_counted(place):
    async def work():
        place.now = 1000.0
        fill(place)
        copier, _ = place.copier(interval_s=100.0)
        await copier.copy_if_due(place.world.at)
        assert copier.missing == {}
        await place.log.forget(subjects.REPORTS, place.world.at[subjects.REPORTS])
        fill(place, trials=1, count=8, start=40)
        await place.log.forget(subjects.REPORTS, place.world.at[subjects.REPORTS])
        copier.missing = {}
        copier._is_due = never
        await copier.copy_if_due(place.world.at)
        assert copier.missing == {subjects.REPORTS: 1}

    async def never(*_):
        return False

    asyncio.run(work())


def test_a_copy_of_an_earlier_release_is_migrated(place):
    async def work():
        fill(place)
        await place.copy()
        store, newest = CopyStore(DirectoryBlobs(place.folder)), await newest_copy(place.log, OWNER)
        manifest = store.manifest(newest.fact.copy, OWNER)
        earlier = [page for page in manifest.pages if store.page(page.key)[0].table != "trial_homes"]
        key = store.put_manifest(msgspec.structs.replace(manifest, schema="0006", pages=earlier))
        whole = place.rows()
        place.tables.drop()
        await restore(place.tables.database, store, msgspec.structs.replace(newest.fact, copy=key))
        assert place.rows() == whole | {"trial_homes": []}
        assert place.tables.database.read_sync(schema_of) == "0007"

    asyncio.run(work())


@pytest.mark.live
@pytest.mark.parametrize("tables", ["sqlite"], indirect=True)
def test_either_database_is_filled_from_a_copy_of_the_other(place, tables, postgres_url, tmp_path):
    """A copy of SQLite fills PostgreSQL, and a copy of that another SQLite."""

    async def work():
        fill(place)
        await place.copy()
        whole = place.rows()
        server, other = open_database(postgres_url, OWNER), open_sqlite(tmp_path / "other.db", OWNER)
        store = CopyStore(DirectoryBlobs(place.folder))
        assert await restore(server, store, (await newest_copy(place.log, OWNER)).fact)
        assert rows_of(server) == whole
        tables.database, first = server, tables.database
        place.world.at[subjects.CONTROL] += 1
        await place.copy()
        assert await restore(other, store, (await newest_copy(place.log, OWNER)).fact)
        assert rows_of(other) == whole
        for database in (first, server, other):
            database.close()

    asyncio.run(work())


def test_a_database_with_content_is_left_alone(place):
    async def work():
        fill(place)
        await place.copy()
        fill(place, start=40)
        whole = place.rows()
        newest = await newest_copy(place.log, OWNER)
        store = CopyStore(DirectoryBlobs(place.folder))
        assert not await restore(place.tables.database, store, newest.fact)
        assert place.rows() == whole
        assert place.tables.ask(Reports(trial_ids=[1]))["rows"]
        assert place.tables.ask(LogPage(task_id="1.a"))["lines"]

    asyncio.run(work())


@pytest.mark.parametrize("owner", [OWNER, *FURTHER_SHARDS])
def test_each_process_may_announce_its_own_copies(owner):
    subject = f"control.metrics.database.{owner}.copied"
    assert any(matches(pattern, subject) for pattern in published_by(owner))
    others = {OWNER, *FURTHER_SHARDS} - {owner, OWNER}
    assert not [other for other in others if any(matches(p, subject) for p in published_by(other))]


class Beginning:
    """What a process that has just begun is restored with."""

    def __init__(self, place, location):
        self.restoration = Restoration(
            OWNER,
            MetricsSettings(metrics_store=location),
            place.tables.database,
            place.log,
            SelfWatch(OWNER, ServiceSettings(), Measures(OWNER)),
            Snapshot(OWNER, State),
        )

    def troubles(self, condition=COPY_FAILS):
        current = self.restoration.watch.conditions.current()
        return [trouble.detail for trouble in current if trouble.condition == condition]


async def located(place):
    """Where a process would look for its copies; they are moved there."""
    store = await store_of(MetricsSettings(metrics_store=str(place.folder)), OWNER, place.log)
    place.folder = store._blobs._root


def test_a_log_is_recognized_through_a_broker_that_is_behind(tmp_path):
    """Taken for an empty one, a lost database would begin without its copy."""

    async def work():
        lagging, whole = LaggingLog(), MemoryLog()
        for log in (lagging, whole):
            await log.append(Draft("control.gateway.first", b"the first event", "1"))
        lagging.caught_up.set()
        settings = MetricsSettings(metrics_store=str(tmp_path))
        places = [repr(await store_of(settings, OWNER, log)) for log in (lagging, whole)]
        assert places[0] == places[1] != "None"

    asyncio.run(work())


def test_a_process_waits_for_its_copy(place, monkeypatch):
    async def work():
        monkeypatch.setattr(restoring, "RETRY_S", 0.0)
        location = str(place.folder)
        place.world.add(ExperimentDeleted(9, "DELETED", "its owner wants it"))
        await located(place)
        fill(place)
        await place.copy()
        whole = place.rows()
        place.tables.drop()
        newest = await newest_copy(place.log, OWNER)
        path = DirectoryBlobs(place.folder)._path(newest.fact.copy)
        path.rename(path.with_suffix(".away"))
        begun = Beginning(place, location)
        waiting = asyncio.create_task(restore_copy(begun.restoration))
        await until(begun.troubles)
        assert newest.fact.copy in begun.troubles()[0]
        assert "unset STEADFAST_METRICS_STORE" in begun.troubles()[0]
        path.with_suffix(".away").rename(path)
        assert await waiting
        assert begun.troubles() == []
        assert place.rows() == whole
        assert not await restore_copy(begun.restoration)

    asyncio.run(work())


def test_without_the_setting_a_copy_is_not_used(place):
    async def work():
        fill(place)
        await place.copy()
        place.tables.drop()
        assert not await restore_copy(Beginning(place, "").restoration)
        assert place.tables.database.read_sync(restoring.is_empty)

    asyncio.run(work())


def test_a_place_that_is_none_is_refused(place):
    with pytest.raises(BadSettings, match=r"STEADFAST_METRICS_STORE: 'ftp://x' is neither"):
        asyncio.run(restore_copy(Beginning(place, "ftp://x").restoration))
    with pytest.raises(BadSettings, match="STEADFAST_METRICS_COPY_HOURS=0"):
        MetricsSettings(metrics_copy_hours=0)


def test_a_copy_from_behind_the_end_of_a_stream_is_not_used(place, monkeypatch):
    async def work():
        monkeypatch.setattr(restoring, "RETRY_S", 0.0)
        location = str(place.folder)
        fill(place)
        await place.copy()
        place.tables.drop()
        del place.world.streams[subjects.REPORTS][-1]
        begun = Beginning(place, location)
        waiting = asyncio.create_task(restore_copy(begun.restoration))
        await until(begun.troubles)
        assert "REPORTS ends at position 14, but the copy was taken at 15" in begun.troubles()[0]
        await cancel_and_wait(waiting)
        assert place.tables.database.read_sync(restoring.is_empty)

    place.world.add(ExperimentDeleted(9, "DELETED", "its owner wants it"))
    asyncio.run(work())


def test_a_store_that_is_away_is_reported_and_copied_to_when_it_is_back(place, tmp_path):
    async def work():
        fill(place)
        location = tmp_path / "mounted" / "store"
        location.parent.write_text("not mounted yet")
        conditions = Conditions(OWNER)
        parts = SimpleNamespace(
            runner=SimpleNamespace(ready=asyncio.Event(), rules=SimpleNamespace(owner=OWNER)),
            settings=MetricsSettings(metrics_store=str(location), metrics_copy_hours=1e-6),
            is_leader=lambda: True,
            database=place.tables.database,
            journal=place.log,
            stream=place.log,
            saver=SimpleNamespace(saved_positions=dict(place.world.at)),
            conditions=conditions,
        )
        parts.runner.ready.set()
        keeping = asyncio.create_task(keep_copies(parts))
        await until(conditions.current)
        (trouble,) = conditions.current()
        assert trouble.condition == COPY_FAILS
        assert str(location) in trouble.detail
        location.parent.unlink()
        await until(lambda: not conditions.current())
        await cancel_and_wait(keeping)
        assert (await newest_copy(place.log, OWNER)).fact.through == place.world.at

    place.world.add(ExperimentDeleted(9, "DELETED", "its owner wants it"))
    asyncio.run(work())
