"""Brings a service's database to today's schema before the service uses it.

Each service keeps its alembic revisions in `services/<owner>/migrations`. Alembic is loaded only
when there is something to do: an up-to-date start costs one small query.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from services.kit.database import Database

VERSIONS = sa.table("alembic_version", sa.column("version_num"))


def open_database(url: str, owner: str) -> Database:
    """The database of one service, migrated; with PostgreSQL in a schema named after the owner."""
    if url.startswith("postgresql"):
        url = _with_schema(url, owner)
    database = Database(url)
    folder = Path(__file__).parent.parent / owner / "migrations"
    if _version(database) != _newest(folder):
        _upgrade(database, folder)
    return database


def _with_schema(url: str, owner: str) -> str:
    parsed = sa.make_url(url)
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    engine = sa.create_engine(parsed)
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema(owner, if_not_exists=True))
    engine.dispose()
    scoped = parsed.update_query_dict({"options": f"-csearch_path={owner}"})
    return scoped.render_as_string(hide_password=False)


def _version(database: Database) -> str | None:
    with database.engine.connect() as connection:
        if not sa.inspect(connection).has_table(VERSIONS.name):
            return None
        return connection.execute(sa.select(VERSIONS.c.version_num)).scalar()


def _newest(folder: Path) -> str:
    """Revisions are files `0001_<what>.py`, in order."""
    return max(path.name.split("_")[0] for path in (folder / "versions").glob("[0-9]*.py"))


def _upgrade(database: Database, folder: Path) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(folder))
    with database.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
