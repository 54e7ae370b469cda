"""A snapshot from before findings were records of their own goes on with what was not stated yet."""

import json
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from services import metrics
from services.kit.database import SNAPSHOTS, Database
from services.kit.migrate import open_database
from services.kit.snapshot import Snapshot
from services.metrics.domain import State
from services.metrics.react import react

OLD = {
    "id": 7, "run": 1, "batch": 3, "senders": [], "opened": 1, "decided": 3, "stated": 1, "refusals": [],
    "pending": [
        {"number": number, "refused": None, "validated": {
            "trial_id": 7, "number": number, "run": 1, "steps_completed": 10 * number, "metric": 0.5,
            "reported_at": 1.0}}
        for number in (2, 3)
    ],
}  # fmt: skip


def test_what_was_not_stated_is_stated(tmp_path):
    url = f"sqlite:///{tmp_path}/old.db"
    database, config = Database(url), Config()
    config.set_main_option("script_location", str(Path(metrics.__file__).parent / "migrations"))
    with database.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0003")
        rows = [
            {"owner": "metrics", "kind": "trials", "id": str(id), "body": json.dumps(body).encode()}
            for id, body in ((7, OLD), (8, {"id": 8, "pending": []}))
        ]
        connection.execute(sa.insert(SNAPSHOTS), rows)
    database.close()
    database = open_database(url, "metrics")
    state, _ = database.look(Snapshot("metrics", State).load)
    database.close()
    assert [one.steps_completed for one in react(state, ("trials", 7))] == [20, 30]
    assert not react(state, ("trials", 8))
