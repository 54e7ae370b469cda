"""Releases whose folds differ over one database: each keeps a snapshot of its own, and folds the log anew."""

import asyncio
from dataclasses import dataclass, field

import msgspec
import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from det_contracts.envelope import Recorded
from services.kit.database import METADATA, POSITIONS, SNAPSHOTS, Database
from services.kit.log import Mark
from services.kit.rebuild import Rebuild
from services.kit.rules import Rules
from services.kit.snapshot import Snapshot, furthest_positions
from services.kit.snapshot_store import DatabaseSaver

LOG = [3, 4, 5, 6, 7]
TABLES = sa.MetaData()
SHOWN = sa.Table(
    "shown", TABLES, sa.Column("id", sa.String, primary_key=True), sa.Column("total", sa.Integer)
)


class Sum(msgspec.Struct, frozen=True):
    total: int = 0


class NewerSum(msgspec.Struct, frozen=True, kw_only=True):
    total: int = 0
    count: int


@dataclass
class State:
    sums: dict[str, Sum] = field(default_factory=dict)


@dataclass
class NewerState:
    sums: dict[str, NewerSum] = field(default_factory=dict)


def project(connection, records, events):
    for key, record in records.items():
        connection.execute(sa.delete(SHOWN).where(SHOWN.c.id == key[1]))
        connection.execute(sa.insert(SHOWN), {"id": key[1], "total": record.total})


def empty(connection):
    connection.execute(sa.delete(SHOWN))


class Release:
    """A process of one release: what it folds, it saves."""

    def __init__(self, database, version, *, tables=False):
        self.version = version
        self.type, self.record = (State, Sum) if version == 1 else (NewerState, NewerSum)
        more = {"projection": project, "clear_projection": empty} if tables else {}
        self.saver = DatabaseSaver(
            database,
            "toy",
            self.type,
            fold_version=version,
            marks=lambda: {"CONTROL": Mark(self.at, 0)},
            **more,
        )
        self.at, self.began = 0, None

    async def start(self):
        self.state, positions = await self.saver.load()
        self.at = self.began = positions.get("CONTROL", 0)

    async def fold(self, upto):
        name = "odd" if self.version == 1 else "all"
        for position in range(self.at + 1, upto + 1):
            previous = self.state.sums.get(name)
            total = (previous.total if previous else 0) + LOG[position - 1]
            made = Sum(total) if self.version == 1 else NewerSum(total=total, count=position)
            self.state.sums[name] = made
            self.at = position
            event = Recorded(position, None, "", "", 0.0, "", "CONTROL")
            await self.saver.changed(self.state, {("sums", name)}, [event], {"CONTROL": position})
        task = asyncio.create_task(self.saver.run())
        await self.saver.wait_for_position(upto)
        task.cancel()


@pytest.fixture
def database(tmp_path):
    toy_database = Database(f"sqlite:///{tmp_path}/toy.db")
    METADATA.create_all(toy_database.engine)
    TABLES.create_all(toy_database.engine)
    yield toy_database
    toy_database.close()


async def lived(database, version, upto, **more):
    release = Release(database, version, **more)
    await release.start()
    await release.fold(upto)
    return release


def shown(connection):
    return sorted(map(tuple, connection.execute(sa.select(SHOWN))))


def test_a_fold_of_another_version_begins_with_the_log_and_the_other_goes_on_where_it_was(database):
    async def work():
        older = await lived(database, 1, 2)
        newer = await lived(database, 2, 3)
        assert (older.began, newer.began) == (0, 0)
        assert newer.state.sums == {"all": NewerSum(total=3 + 4 + 5, count=3)}
        back = await lived(database, 1, 4)
        assert back.began == 2
        assert back.state.sums == {"odd": Sum(3 + 4 + 5 + 6)}
        forth = await lived(database, 2, 5)
        assert forth.began == 3
        assert forth.state.sums == {"all": NewerSum(total=sum(LOG), count=5)}

    asyncio.run(work())


def test_both_run_side_by_side_and_save_in_turn(database):
    async def work():
        older, newer = Release(database, 1), Release(database, 2)
        for release in (older, newer):
            await release.start()
        for upto in (1, 2, 3, 4, 5):
            await older.fold(upto)
            await newer.fold(upto)
        for version, state in ((1, older.state), (2, newer.state)):
            again = Release(database, version)
            await again.start()
            assert (again.state, again.began) == (state, 5)

    asyncio.run(work())


@pytest.mark.parametrize("meanwhile", [0, 1])
def test_tables_that_another_version_has_written_since_are_written_again(database, meanwhile):
    async def work():
        await lived(database, 1, 3, tables=True)
        assert await database.read(shown) == [("odd", 12)]
        newer = await lived(database, 2, 3 + meanwhile, tables=True)
        assert await database.read(shown) == [("all", newer.state.sums["all"].total)]
        back = await lived(database, 1, 4, tables=True)
        assert back.began == 0
        assert await database.read(shown) == [("odd", 3 + 4 + 5 + 6)]
        again = await lived(database, 1, 5, tables=True)
        assert again.began == 4

    asyncio.run(work())


def test_older_fold_versions_are_removed_and_the_identity_of_the_log_stays(database):
    async def work():
        for version in (1, 2, 3):
            await lived(database, version, 3)
        owners = await database.read(lambda c: set(c.execute(sa.select(POSITIONS.c.owner)).scalars()))
        assert owners == {"toy@2", "toy@3"}
        rows = sa.select(SNAPSHOTS.c.owner).where(SNAPSHOTS.c.owner == "toy", SNAPSHOTS.c.kind != "log marks")
        assert not await database.read(lambda c: c.execute(rows).all())
        newest = Snapshot("toy", NewerState, 9)
        assert await database.read(newest.marks) == {"CONTROL": Mark(3, 0)}
        assert await database.read(furthest_positions) == {"CONTROL": 3}

    asyncio.run(work())


def test_it_is_said_that_the_log_is_folded_anew(database):
    async def work(version):
        rebuild = Rebuild("toy", "")
        with capture_logs() as log_lines:
            await rebuild.check(None, database, Snapshot("toy", State, version), {"CONTROL": ()})
        return rebuild.starting_note(), [(line["event"], line["stored"], line["mine"]) for line in log_lines]

    assert asyncio.run(work(2)) == ("", [])
    asyncio.run(lived(database, 1, 3))
    words = "; it is rebuilt from the log: the database holds fold version 1, this release has 2"
    assert asyncio.run(work(2)) == (words, [("database.other_fold", 1, 2)])
    assert asyncio.run(work(1)) == ("", [])


def test_what_cannot_be_folded_anew_has_no_version():
    with pytest.raises(ValueError, match="metrics folds REPORTS, which discard old messages"):
        Rules("metrics", State, None, None, streams={"CONTROL": (), "REPORTS": ()}, fold_version=2)
