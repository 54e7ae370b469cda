"""What databases of earlier releases hold is put right when they are opened."""

import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from services import metrics
from services.kit.database import SNAPSHOTS, Database
from services.kit.migrate import open_database
from services.kit.snapshot import Snapshot
from services.metrics.domain import State
from services.metrics.react import react
from services.metrics.reports.tables import CHUNKS, PARTITIONS, TRIALS

OLD = {
    "id": 7, "run": 1, "batch": 3, "senders": [], "opened": 1, "decided": 3, "stated": 1, "refusals": [],
    "pending": [
        {"number": number, "refused": None, "validated": {
            "trial_id": 7, "number": number, "run": 1, "steps_completed": 10 * number, "metric": 0.5,
            "reported_at": 1.0}}
        for number in (2, 3)
    ],
}  # fmt: skip


@pytest.fixture
def database_of(tmp_path):
    """Makes a database as of a revision, with rows, and opens it as today's release does."""
    url, opened = f"sqlite:///{tmp_path}/old.db", []

    def make(revision, rows):
        database, config = Database(url), Config()
        config.set_main_option("script_location", str(Path(metrics.__file__).parent / "migrations"))
        with database.engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
            for table, several in rows.items():
                connection.execute(sa.insert(table), several)
        database.close()
        opened.append(open_database(url, "metrics"))
        return opened[0]

    yield make
    for database in opened:
        database.close()


def test_what_was_not_stated_is_stated(database_of):
    """By a snapshot from before findings were records of their own."""
    rows = [
        {"owner": "metrics", "kind": "trials", "id": str(id), "body": json.dumps(body).encode()}
        for id, body in ((7, OLD), (8, {"id": 8, "pending": []}))
    ]
    database = database_of("0003", {SNAPSHOTS: rows})
    state, _ = database.read_sync(Snapshot("metrics", State).load)
    assert [decision.steps_completed for decision in react(state, ("trials", 7))] == [20, 30]
    assert not react(state, ("trials", 8))


def test_seconds_of_samples_no_longer_count_as_batches(database_of):
    trials = [
        {"trial_id": id, "experiment_id": 1, "smaller_is_better": True, "total_batches": 99}
        for id in (1, 2, 3)
    ]
    kinds = [(10, 1, "training"), (11, 1, "profile.process"), (20, 2, "training"), (30, 3, "profile.process")]
    partitions = [
        {"id": id, "trial_id": trial, "run": 1, "kind": kind, "merges": False, "digest": b"", "names": b"[]"}
        for id, trial, kind in kinds
    ]
    chunks = [
        {"id": id, "partition_id": id, "level": 0, "archived": False, "reports": 1, "names": 0,
         "first_steps": 1, "last_steps": id, "first_at": 0, "last_at": 0, "frame": b""}
        for id, _, _ in kinds
    ]  # fmt: skip
    database = database_of("0005", {TRIALS: trials, PARTITIONS: partitions, CHUNKS: chunks})
    query = sa.select(TRIALS.c.total_batches).order_by(TRIALS.c.trial_id)
    assert database.read_sync(lambda connection: connection.execute(query).scalars().all()) == [10, 99, 99]
