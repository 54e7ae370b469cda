"""A damaged SQLite file: found before or while it is used, kept under another name, and made again."""

import asyncio
import contextlib
import shutil
import sqlite3
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from services.kit import database as database_module
from services.kit import sqlite_files
from services.kit.database import SQLITE_CACHE_KIB, Database, DatabaseDamaged, UnreadableRecord
from services.kit.files import MAX_DAMAGED_COPIES, damaged_copies
from services.kit.migrate import open_database
from services.kit.snapshot import Snapshot
from services.searcher.app import SERVICE

OWNER = "searcher"
PAGE = 4096


@pytest.fixture
def path(tmp_path):
    return tmp_path / "it.db"


def url(path):
    return f"sqlite:///{path}"


def closed(path, rows=0):
    """A database that was used and closed."""
    database = open_database(url(path), OWNER)
    database.close()
    with sqlite3.connect(path) as connection:
        records = [(OWNER, "experiments", str(n), b"x" * 500) for n in range(rows)]
        connection.executemany("insert into snapshots (owner, kind, id, body) values (?, ?, ?, ?)", records)
    connection.close()


def killed(path, rows=0):
    """The same as its user's kill -9 leaves it: what was written last, 200 records, is beside it."""
    closed(path, rows)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_autocheckpoint=0")
    with connection:
        records = [(OWNER, "trials", str(n), b"x" * 500) for n in range(200)]
        connection.executemany("insert into snapshots (owner, kind, id, body) values (?, ?, ?, ?)", records)
    left = path.with_name("left.db")
    for ending in ("", "-wal"):
        shutil.copy(f"{path}{ending}", f"{left}{ending}")
    connection.close()
    return left


def overwrite(path, offset, content):
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def count(path):
    with sqlite3.connect(path) as connection:
        (number,) = connection.execute("select count(*) from snapshots").fetchone()
    connection.close()
    return number


DAMAGES = {
    "another file": (lambda p: p.write_bytes(b"not a database\n" * 1000), "does not start like"),
    "a header of zeros": (lambda p: overwrite(p, 0, b"\0" * 100), "does not start like"),
    "a few bytes": (lambda p: p.write_bytes(b"SQLite"), "does not start like"),
    "cut": (lambda p: p.write_bytes(p.read_bytes()[: 3 * PAGE]), "is truncated"),
    "a page size of nonsense": (lambda p: overwrite(p, 16, b"\3\1"), "pages of"),
    "no schema": (lambda p: overwrite(p, 100, b"\xff" * (PAGE - 100)), "malformed"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found_at_the_start_and_the_file_kept(path, name):
    damage, words = DAMAGES[name]
    closed(path, rows=100)
    damage(path)
    before = path.read_bytes()
    database = open_database(url(path), OWNER)
    assert words in database.damaged
    database.close()
    (copy,) = damaged_copies(path, sqlite_files.COMPANIONS)
    assert copy.read_bytes() == before
    assert count(path) == 0


def test_an_empty_file_is_a_new_one(path):
    path.touch()
    database = open_database(url(path), OWNER)
    assert "empty" in database.damaged
    database.close()
    assert not damaged_copies(path)


def test_a_sound_file_is_left_alone(path):
    closed(path, rows=100)
    database = open_database(url(path), OWNER)
    assert database.damaged == ""
    database.close()
    assert count(path) == 100


def test_what_a_kill_leaves_is_sound(path):
    left = killed(path)
    assert left.stat().st_size < 200 * 500
    database = open_database(url(left), OWNER)
    assert database.damaged == ""
    database.close()
    assert count(left) == 200


def test_damage_inside_is_found_where_the_last_user_did_not_close(path):
    left = killed(path, rows=2000)
    pages = left.stat().st_size // PAGE
    overwrite(left, pages // 4 * PAGE, b"\xff" * (pages // 2 * PAGE))
    database = open_database(url(left), OWNER)
    assert database.damaged
    database.close()
    assert len(damaged_copies(left, sqlite_files.COMPANIONS)) == 1


def test_a_damaged_wal_costs_what_was_in_it_and_no_more(path):
    left = killed(path)
    overwrite(left.with_name("left.db-wal"), 0, b"\0" * 32)
    database = open_database(url(left), OWNER)
    assert database.damaged == ""
    database.close()
    assert count(left) == 0


def test_a_look_inside_takes_no_longer_than_it_may(path, monkeypatch):
    left = killed(path)
    rung = []

    class AtOnce:
        def __init__(self, seconds, ring):
            self.ring = ring

        def start(self):
            rung.append(True)

        cancel = join = lambda self: None

    class Interrupted:
        def execute(self, text):
            error = sqlite3.OperationalError("interrupted")
            error.sqlite_errorcode = sqlite3.SQLITE_INTERRUPT
            raise error

        def interrupt(self):
            pass

    monkeypatch.setattr(sqlite_files, "threading", SimpleNamespace(Timer=AtOnce))
    assert sqlite_files._quick_check(Interrupted()) == "ok"
    assert rung
    assert left.exists()


def test_damage_that_is_met_while_running_ends_the_process_and_the_next_start_begins_anew(path):
    closed(path, rows=2000)

    async def story():
        database = open_database(url(path), OWNER)
        assert database.damaged == ""
        watch = asyncio.create_task(database.raise_when_damaged())
        await asyncio.sleep(0)
        overwrite(path, 8 * PAGE, b"\xff" * (path.stat().st_size - 8 * PAGE))
        with pytest.raises(sa.exc.DatabaseError, match="malformed"):
            await database.read(lambda c: c.exec_driver_sql("select sum(length(body)) from snapshots").all())
        with pytest.raises(DatabaseDamaged, match="malformed"):
            async with asyncio.timeout(60):
                await watch
        database.close()

    asyncio.run(story())
    database = open_database(url(path), OWNER)
    assert "malformed" in database.damaged
    database.close()
    assert count(path) == 0
    database = open_database(url(path), OWNER)
    assert database.damaged == ""
    database.close()


def test_a_record_whose_bytes_changed_is_damage(path):
    closed(path, rows=1)

    async def story():
        database = open_database(url(path), OWNER)
        with pytest.raises(UnreadableRecord, match="experiments '0'"):
            await database.read(Snapshot(OWNER, SERVICE.rules.state).load)
        database.close()

    asyncio.run(story())
    assert "experiments '0'" in sqlite_files.damage(path)


def test_other_errors_are_no_damage(path):
    closed(path)

    async def story():
        database = open_database(url(path), OWNER)
        with pytest.raises(sa.exc.OperationalError, match="no such table"):
            await database.read(lambda c: c.exec_driver_sql("select * from nowhere").all())
        database.close()

    asyncio.run(story())
    assert sqlite_files.damage(path) == ""


def test_few_damaged_files_are_kept(path):
    for number in range(MAX_DAMAGED_COPIES + 2):
        path.write_bytes(b"nonsense %d" % number * 20)
        open_database(url(path), OWNER).close()
    contents = [copy.read_bytes() for copy in damaged_copies(path, sqlite_files.COMPANIONS)]
    assert contents == [b"nonsense %d" % number * 20 for number in range(2, MAX_DAMAGED_COPIES + 2)]


@pytest.mark.parametrize("of", ["sqlite://", "sqlite:///:memory:", "postgresql://u:p@h/d"])
def test_only_files_of_sqlite_are_looked_at(of):
    assert sqlite_files.sqlite_file(of) is None
    assert sqlite_files.set_aside_if_damaged(of, OWNER) == ""


def test_a_database_without_a_file_is_never_set_aside():
    async def story():
        database = Database("sqlite://", readers=1)
        with pytest.raises(sa.exc.OperationalError):
            await database.write(lambda c: c.exec_driver_sql("select * from nowhere"))
        database.close()

    asyncio.run(story())


def test_no_connection_keeps_pages_for_itself_that_the_kernel_holds(path):
    """Five of them, in each of six services, kept up to 60 MB of what is small."""
    database = open_database(url(path), OWNER)
    with contextlib.ExitStack() as stack:
        all_at_once = [stack.enter_context(database.engine.connect()) for _ in range(5)]
        sizes = [connection.exec_driver_sql("PRAGMA cache_size").scalar() for connection in all_at_once]
    database.close()
    # Below 0 it is in KiB.
    assert sizes == [-SQLITE_CACHE_KIB] * 5


def test_a_file_that_another_process_is_changing_is_opened_once_that_lets_go(path, monkeypatch):
    """As where several processes open a new file at once: SQLite itself does not wait for that lock."""
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("create table t (a)")
        other.execute("begin immediate")
        pauses = []

        def let_go(seconds):
            pauses.append(seconds)
            other.rollback()

        monkeypatch.setattr(database_module, "sleep", let_go)
        database = Database(url(path))
        assert database.read_sync(lambda c: c.exec_driver_sql("PRAGMA journal_mode").scalar()) == "wal"
        database.close()
        assert len(pauses) == 1
