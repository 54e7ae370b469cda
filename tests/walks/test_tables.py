"""What is written into tables for one event walks through no table: every statement has an index to go by."""

import pytest
import sqlalchemy as sa

from det_contracts.events.metrics import LogsTrimmed, PointsDropped
from det_contracts.events.searcher import ExperimentDeleted, TrialsDeleted
from services.catalogue.store import write_rows as project_gateway
from services.kit.rules import every_key
from services.metrics.store import project as project_metrics
from tests.fixtures.databases import open_sqlite
from tests.metrics.world import World, lines, reports, training, validation
from tests.walks.background import Background
from tests.walks.cluster import Cluster

EXPLAIN = "EXPLAIN QUERY PLAN"
DELETION = (
    TrialsDeleted(1, (1,), ("1.a",), "deleted"),
    ExperimentDeleted(1, "DELETED", "deleted"),
    ExperimentDeleted(2, "DELETED", "deleted", (2,)),
)


@pytest.fixture
def planned(tmp_path):
    """Run some work on a service's database; returns how SQLite looks up what each statement touches."""
    opened = []

    def run(owner, work):
        database = open_sqlite(tmp_path / f"{owner}.db", owner)
        opened.append(database)
        statements = {}

        def note(connection, cursor, statement, parameters, context, many):
            if not statement.startswith(("EXPLAIN", "PRAGMA", "BEGIN")):
                statements[statement] = parameters[0] if many else parameters

        with database.engine.begin() as connection:
            sa.event.listen(database.engine, "before_cursor_execute", note)
            work(connection)
            sa.event.remove(database.engine, "before_cursor_execute", note)
            return {
                statement: [
                    row[3] for row in connection.exec_driver_sql(f"{EXPLAIN} {statement}", row_parameters)
                ]
                for statement, row_parameters in statements.items()
            }

    yield run
    for database in opened:
        database.close()


def walks(plans):
    """Statements that go through a whole table."""
    return [
        (statement, step)
        for statement, steps in plans.items()
        for step in steps
        # A list of given values is a table to SQLite, too.
        if step.startswith("SCAN") and not step.startswith(("SCAN CONSTANT", "SCAN json_each", "SCAN VALUES"))
    ]


def test_the_tables_of_the_metrics_service(planned):
    world = World()
    for trial, task in ((1, "1.a"), (2, "2.a")):
        world.add(
            reports(training(range(40), loss=[0.5] * 40), trial=trial, experiment=trial),
            reports(validation([50], loss=[0.5]), trial=trial, experiment=trial, number=2),
            reports(validation([50], acc=[0.5]), trial=trial, experiment=trial, number=3),
            reports(validation([20], loss=[0.1]), trial=trial, experiment=trial, run=2),
            lines("a", "b", task=task),
            lines("c", offset=2, task=task),
        )
    world.add(PointsDropped(trial_id=2, through=1, reason="old"), LogsTrimmed(through=1, reason="old"))
    world.add(*DELETION).fold()

    def work(connection):
        # One by one, so that nothing of a portion spares another a statement.
        for event in world.unsaved:
            project_metrics(connection, {}, [event])

    plans = planned("metrics", work)
    assert any("DELETE FROM log_chunks" in statement for statement in plans)
    assert any("DELETE FROM chunks" in statement for statement in plans)
    assert not walks(plans)


def test_the_tables_of_the_gateway(planned):
    cluster = Cluster()
    Background(cluster, 3)
    state = cluster.states["gateway"]
    records = {key: getattr(state, key[0])[key[1]] for key in every_key(state)}

    def work(connection):
        project_gateway(connection, records, [])
        project_gateway(connection, dict.fromkeys(records), [])

    plans = planned("gateway", work)
    assert any("DELETE FROM checkpoints" in statement for statement in plans)
    assert not walks(plans)
