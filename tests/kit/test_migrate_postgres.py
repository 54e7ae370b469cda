"""Each service's tables: made on PostgreSQL as on SQLite, apart from each other's, by whoever comes first."""

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass, field

import msgspec
import pytest
import sqlalchemy as sa

from services.kit import migrate
from services.kit.database import POSITIONS, SNAPSHOTS, Database, upsert
from services.kit.settings import BadSettings
from services.kit.snapshot import Snapshot

OWNERS = ("searcher", "scheduler", "metrics", "checkpoints", "webhooks", "gateway")
LARGE = 2**62


class Note(msgspec.Struct, frozen=True):
    text: str


@dataclass
class State:
    notes: dict[str, Note] = field(default_factory=dict)


def tables_by_schema(url):
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    try:
        inspector = sa.inspect(engine)
        return {name: set(inspector.get_table_names(schema=name)) for name in inspector.get_schema_names()}
    finally:
        engine.dispose()


def start(url, owner):
    """A process that opens a service's database, as a replica does."""
    program = (
        "import sys; from services.kit import migrate; migrate.open_database(*sys.argv[1:]).close(); "
        "print('alembic loaded:', 'alembic' in sys.modules)"
    )
    command = [sys.executable, "-c", program, url, owner]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process):
    """What it printed, when all went well."""
    try:
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    return output


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/one.db"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def database(database_url):
    searcher_database = migrate.open_database(database_url, "searcher")
    yield searcher_database
    searcher_database.close()


@pytest.mark.live
def test_each_service_has_a_schema_of_its_own(postgres_url):
    for owner in OWNERS:
        migrate.open_database(postgres_url, owner).close()
    tables = tables_by_schema(postgres_url)
    for owner in OWNERS:
        assert tables[owner] >= {"alembic_version", "positions", "snapshots"}
    assert "log_chunks" in tables["metrics"]
    assert "log_chunks" not in tables["gateway"]
    assert tables["public"] == set()


@pytest.mark.live
def test_each_metrics_process_has_a_schema_of_its_own(postgres_url):
    for owner in ("metrics", "metrics-2"):
        migrate.open_database(postgres_url, owner, "metrics").close()
    tables = tables_by_schema(postgres_url)
    assert tables["metrics"] == tables["metrics_2"] >= {"positions", "log_chunks"}


@pytest.mark.live
def test_a_database_that_cannot_hold_every_text_is_refused_in_words(postgres_url):
    engine = sa.create_engine(
        postgres_url.replace("postgresql://", "postgresql+psycopg://", 1), isolation_level="AUTOCOMMIT"
    )
    name = f"{sa.make_url(postgres_url).database}_plain"
    with engine.connect() as connection:
        connection.execute(
            sa.text(
                f"create database {name} encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' template template0"
            )
        )
    engine.dispose()
    url = sa.make_url(postgres_url).set(database=name).render_as_string(hide_password=False)
    with pytest.raises(BadSettings, match=rf"STEADFAST_DATABASE_URL: .*'{name}' has encoding SQL_ASCII"):
        migrate.open_database(url, "searcher")


@pytest.mark.live
@pytest.mark.parametrize("owner", OWNERS)
def test_the_tables_are_as_on_sqlite(owner, tmp_path, postgres_url):
    shapes = []
    for url in (f"sqlite:///{tmp_path}/one.db", postgres_url):
        database = migrate.open_database(url, owner)
        inspector = sa.inspect(database.engine)
        shapes.append(
            {
                table: [(c["name"], c["nullable"]) for c in inspector.get_columns(table)]
                for table in inspector.get_table_names()
            }
        )
        database.close()
    assert shapes[0] == shapes[1]


@pytest.mark.live
def test_a_second_start_changes_nothing_and_needs_no_alembic(postgres_url):
    migrate.open_database(postgres_url, "metrics").close()
    assert finished(start(postgres_url, "metrics")) == "alembic loaded: False\n"


@pytest.mark.live
def test_replicas_may_start_at_the_same_time(postgres_url):
    replicas = [start(postgres_url, "searcher") for _ in range(4)]
    for replica in replicas:
        finished(replica)
    assert "snapshots" in tables_by_schema(postgres_url)["searcher"]


@pytest.mark.live
def test_a_service_needs_no_right_to_make_schemas_that_are_there(postgres_url):
    administrator = Database(postgres_url.replace("postgresql://", "postgresql+psycopg://", 1))
    role = f"modest_{sa.make_url(postgres_url).database}"
    with administrator.engine.begin() as connection:
        connection.execute(sa.text(f"create role {role} login password 'word'"))
        connection.execute(sa.text(f"create schema checkpoints authorization {role}"))
    try:
        own = sa.make_url(postgres_url).set(username=role, password="word")
        migrate.open_database(own.render_as_string(hide_password=False), "checkpoints").close()
        assert "snapshots" in tables_by_schema(postgres_url)["checkpoints"]
    finally:
        with administrator.engine.begin() as connection:
            connection.execute(sa.text(f"drop owned by {role} cascade"))
            connection.execute(sa.text(f"drop role {role}"))
        administrator.close()


@pytest.mark.live
def test_large_numbers_and_bytes_come_back(database):
    row = {"owner": "o", "stream": "s", "position": LARGE}
    body = bytes(range(256))
    with database.engine.begin() as connection:
        upsert(connection, POSITIONS, [row])
        upsert(connection, SNAPSHOTS, [{"owner": "o", "kind": "k", "id": "i", "body": body}])
    with database.engine.connect() as connection:
        assert connection.execute(sa.select(POSITIONS.c.position)).scalar() == LARGE
        assert connection.execute(sa.select(SNAPSHOTS.c.body)).scalar() == body


@pytest.mark.live
def test_an_upsert_replaces_rows_with_the_same_key(database):
    def keep(*rows):
        with database.engine.begin() as connection:
            upsert(connection, POSITIONS, [{"owner": "o", "stream": s, "position": p} for s, p in rows])

    keep(("a", 1), ("b", 1))
    keep(("b", 2), ("c", 2))
    keep()
    with database.engine.connect() as connection:
        stored_rows = connection.execute(sa.select(POSITIONS.c.stream, POSITIONS.c.position))
        assert {stream: position for stream, position in stored_rows} == {"a": 1, "b": 2, "c": 2}


@pytest.mark.live
def test_a_row_that_is_all_key_may_be_put_twice(database):
    table = sa.Table("marks", sa.MetaData(), sa.Column("name", sa.String, primary_key=True))
    table.create(database.engine)
    with database.engine.begin() as connection:
        upsert(connection, table, [{"name": "a"}])
        upsert(connection, table, [{"name": "a"}, {"name": "b"}])
        assert set(connection.execute(sa.select(table.c.name)).scalars()) == {"a", "b"}


@pytest.mark.live
def test_a_snapshot_is_saved_changed_and_never_set_back(database):
    snapshot = Snapshot("searcher", State)
    first = {("notes", "a"): Note("one"), ("notes", "b"): Note("two")}
    later = {("notes", "a"): Note("three"), ("notes", "b"): None}
    with database.engine.begin() as connection:
        assert snapshot.save(connection, first, {"CONTROL": 1})
    with database.engine.begin() as connection:
        assert snapshot.save(connection, later, {"CONTROL": LARGE})
    with database.engine.begin() as connection:
        assert not snapshot.save(connection, first, {"CONTROL": 2})
    with database.engine.connect() as connection:
        state, positions = snapshot.load(connection)
    assert state.notes == {"a": Note("three")}
    assert positions == {"CONTROL": LARGE}


@pytest.mark.live
def test_its_size_grows_with_what_is_in_it(database):
    empty = asyncio.run(database.size_bytes())
    with database.engine.begin() as connection:
        rows = [
            {"owner": "searcher", "kind": "trials", "id": str(n), "body": os.urandom(2000)}
            for n in range(500)
        ]
        connection.execute(sa.insert(SNAPSHOTS), rows)
    assert asyncio.run(database.size_bytes()) > empty + 500 * 2000
