"""The service's rules in a world of three streams, and its tables on both databases."""

import msgspec
import pytest
import sqlalchemy as sa

from services.kit.snapshot import Snapshot
from services.metrics.domain import State
from services.metrics.logs import tiers
from services.metrics.queries import READS
from tests.fixtures.databases import on_each_database
from tests.metrics.world import World


@pytest.fixture
def world():
    return World()


class Tables:
    """A migrated database of the service."""

    def __init__(self, database):
        self.database = database

    def save(self, world):
        with self.database.engine.begin() as connection:
            world.save(connection)

    def ask(self, query):
        answer = self.database.read_sync(lambda connection: READS[type(query)](connection, query))
        return msgspec.json.decode(msgspec.json.encode(answer))

    def state(self):
        with self.database.engine.begin() as connection:
            return Snapshot("metrics", State).load(connection)

    def drop(self):
        """As if the database had been deleted."""
        with self.database.engine.begin() as connection:
            for table in set(sa.inspect(connection).get_table_names()) - {"alembic_version"}:
                connection.execute(sa.text(f"DELETE FROM {table}"))


database = on_each_database("metrics")


@pytest.fixture
def tables(database):
    return Tables(database)


@pytest.fixture
def saved(world, tables):
    """Fold and save events; returns a function that answers queries."""

    def save(*what):
        world.add(*what).fold()
        tables.save(world)
        return tables.ask

    return save


@pytest.fixture
def small(monkeypatch):
    """Chunks are full with few lines."""
    monkeypatch.setattr(tiers, "STEPS", (2, 4, 8, 16))
