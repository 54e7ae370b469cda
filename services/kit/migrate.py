"""Brings a service's database to the current schema before the service uses it.

Each service keeps its alembic revisions in `services/<owner>/migrations`, and beside them, in `schema.sql`,
what they make of an empty SQLite database (`python -m tests.kit.test_schemas` writes it). Alembic is loaded
only if there is something else to do: an up-to-date start costs one small query. Replicas that start at the
same time on a shared PostgreSQL wait for each other.

Revisions only add: tables, columns with defaults, indexes; an index may be replaced by one that begins with
its columns. A release therefore works with the schema of a later one, beside it or after it. It leaves that
schema unchanged and ignores what it does not know.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
import structlog

from services.kit.database import Database
from services.kit.settings import BadSettings
from services.kit.sqlite_files import set_aside_if_damaged

log = structlog.get_logger()
VERSIONS = sa.table("alembic_version", sa.column("version_num"))
SCHEMA_FILE = "schema.sql"
MIGRATION_LOCK = sa.select(sa.func.pg_advisory_xact_lock(0x57EADFA57))
"""Held while changing the schema of a PostgreSQL database, until the transaction ends."""


def open_database(url: str, owner: str, service: str = "") -> Database:
    """Open and migrate a database. With PostgreSQL it uses a schema named after the owner.

    `service` is the one whose migrations it gets; empty: the owner.

    A damaged SQLite file is set aside and replaced with an empty one. Raises `BadSettings` for a PostgreSQL
    database that cannot store all Unicode text.
    """
    if url.startswith("postgresql"):
        url = _add_schema(url, owner.replace("-", "_"))
    database = Database(url, damaged=set_aside_if_damaged(url, owner))
    folder = Path(__file__).parent.parent / (service or owner) / "migrations"
    now, newest = _version(database), _newest(folder)
    if now is None and database.engine.dialect.name == "sqlite":
        _create_tables(database, folder)
        now = _version(database)
    if now is not None and now > newest:
        log.info("database.later_schema", owner=owner, schema=now, known=newest)
    elif now != newest:
        _upgrade(database, folder)
    return database


def _add_schema(url: str, owner: str) -> str:
    parsed = sa.make_url(url)
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    engine = sa.create_engine(parsed)
    # Check the encoding on connect: with another encoding, strings arrive as bytes and the first query fails.
    sa.event.listen(engine, "do_connect", _connect_checked)
    try:
        with engine.begin() as connection:
            # Replicas that start at once would both find no schema, and the second CREATE would fail.
            connection.execute(MIGRATION_LOCK)
            # If an administrator created the schemas, the service may lack the right to create one.
            if not sa.inspect(connection).has_schema(owner):
                connection.execute(sa.schema.CreateSchema(owner))
    finally:
        engine.dispose()
    scoped = parsed.update_query_dict({"options": f"-csearch_path={owner}"})
    return scoped.render_as_string(hide_password=False)


def _connect_checked(dialect: Any, _: Any, words: list[Any], more: dict[str, Any]) -> Any:
    connection = dialect.connect(*words, **more)
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        name = connection.info.dbname
        connection.close()
        raise BadSettings(
            f"STEADFAST_DATABASE_URL: the PostgreSQL database '{name}' has encoding {encoding} and must have "
            f"UTF8: make another with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0, and name that"
        )
    return connection


def _version(database: Database) -> str | None:
    with database.engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            # Inspectors take a megabyte that they never give back.
            exists = connection.exec_driver_sql(
                "SELECT 1 FROM sqlite_master WHERE name = ?", (VERSIONS.name,)
            ).scalar()
        else:
            exists = sa.inspect(connection).has_table(VERSIONS.name)
        if not exists:
            return None
        return connection.execute(sa.select(VERSIONS.c.version_num)).scalar()


def _create_tables(database: Database, folder: Path) -> None:
    """Make what the revisions make of an empty SQLite database. Does nothing if it is not empty."""
    statements = (folder / SCHEMA_FILE).read_text().split(";\n")
    with database.engine.connect() as connection:
        # Before looking whether it is empty: another process may make the tables at the same time.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        if connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar() == 0:
            for statement in filter(None, statements):
                connection.exec_driver_sql(statement)
        connection.commit()


def _newest(folder: Path) -> str:
    """Return the newest revision. Files are named `0001_<what>.py`, in order."""
    return max(path.name.split("_")[0] for path in (folder / "versions").glob("[0-9]*.py"))


def _upgrade(database: Database, folder: Path) -> None:
    with database.engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(MIGRATION_LOCK)
        upgrade(connection, folder)


def upgrade(connection: sa.Connection, folder: Path, revision: str = "head") -> None:
    """Bring the schema to a revision, in the transaction of the connection."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(folder))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def recreate(connection: sa.Connection, folder: Path, revision: str) -> None:
    """Drop all tables and create those of a revision, for rows that were stored with it."""
    tables = sa.MetaData()
    tables.reflect(connection)
    tables.drop_all(connection)
    upgrade(connection, folder, revision)


def schema_of(connection: sa.Connection) -> str:
    """Return the revision of an opened database."""
    return str(connection.execute(sa.select(VERSIONS.c.version_num)).scalar_one())
