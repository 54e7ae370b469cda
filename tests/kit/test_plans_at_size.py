"""What a service asks of its records touches those it asks for, however many lie there of what has ended.

PostgreSQL chooses by what it knows of the rows. Right after an upgrade, or a rebuild, it knows nothing: so
each statement is looked at before the tables were analyzed and after.
"""

import json

import pytest
import sqlalchemy as sa

from services.checkpoints.app import RULES as CHECKPOINTS
from services.kit.migrate import open_database
from services.kit.snapshot import Snapshot, furthest_positions
from services.metrics.app import RULES as METRICS
from services.scheduler.app import RULES as SCHEDULER
from services.searcher.app import RULES as SEARCHER
from services.webhooks.app import RULES as WEBHOOKS

pytestmark = pytest.mark.live
ENDED, LIVE, TRIALS_EACH = 100_000, 200, 100
ALL = {rules.owner: rules for rules in (SEARCHER, SCHEDULER, CHECKPOINTS, WEBHOOKS, METRICS)}
FILL = """
    INSERT INTO snapshots (owner, kind, id, body, root, away, position)
    SELECT CAST(:owner AS text), CAST(:kind AS text), CAST(:first + n AS text), CAST('{}' AS bytea),
           CAST((:first + n) / :each AS text), :away, 1
    FROM generate_series(1, :count) AS n
"""
MOST = 2_000
"""Rows that one statement may touch. What an index finds counts there and in the table; it is asked for 200
rows that are loaded, and for seven roots with 100 each."""


def kind_of(rules):
    """A table of the state whose records grow with what has ended, or one of those there are."""
    return next(iter(rules.roots.root_lookups)) if rules.roots else next(iter(rules.state().__dict__))


def statements_of(database, work):
    """The statements of some work, each once, with what was given to it; nothing of it stays."""
    statements = {}

    def note(connection, cursor, statement, parameters, context, many):
        statements[statement] = parameters[0] if many else parameters

    with database.engine.connect() as connection:
        sa.event.listen(database.engine, "before_cursor_execute", note)
        work(connection)
        sa.event.remove(database.engine, "before_cursor_execute", note)
        connection.rollback()
    return statements


def touched(node):
    """Rows that a step of a plan and those below it have looked at."""
    rows = sum(
        node.get(name, 0)
        for name in ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
    )
    return rows * node["Actual Loops"] + sum(map(touched, node.get("Plans", ())))


def costly(database, statements):
    """Statements that touch more rows than they may, with their plans."""
    costly_statements = []
    for statement, parameters in statements.items():
        with database.engine.connect() as connection:
            explained = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters)
            (plan,) = explained.scalar_one()
            connection.rollback()
        if touched(plan["Plan"]) > MOST:
            costly_statements.append((statement, json.dumps(plan["Plan"], indent=1)))
    return costly_statements


def of_a_running_service(snapshot, kind):
    """What is asked from a start to a save, in the words of one service."""
    # The rows are no records.
    snapshot._state, snapshot._decode_row = dict, lambda kind, id, body: (id, body)
    ended = [str(number) for number in range(100, 105)]
    key = snapshot._types[kind][0]
    ids = [key(str(number)) for number in (11_111, 22_222, 10**9)]

    def work(connection):
        snapshot.load(connection)
        snapshot.pages(connection, [(kind, id) for id in ids], ended)
        snapshot.records(connection, [(kind, id) for id in ids])
        snapshot.keys_without_root(connection, [kind])
        snapshot.marks(connection)
        snapshot.rebuilt_for(connection)
        furthest_positions(connection)
        snapshot.other_fold_versions(connection)
        changes = {(kind, ids[0]): {}, (kind, ids[1]): None}
        snapshot.save(
            connection, changes, {"CONTROL": 5}, {}, {(kind, ids[0]): ended[0]}, ended[1:], dropped=True
        )

    return work


@pytest.mark.parametrize("rules", ALL.values(), ids=ALL)
def test_no_statement_goes_through_what_has_ended(rules, postgres_url):
    database = open_database(postgres_url, rules.owner)
    snapshot, kind = Snapshot(rules.owner, rules.state, rules.fold_version), kind_of(rules)
    fill = {"owner": snapshot._row_owner, "kind": kind, "each": TRIALS_EACH}
    with database.engine.begin() as connection:
        connection.execute(sa.text(FILL), {**fill, "first": 0, "count": ENDED, "away": 1})
        connection.execute(sa.text(FILL), {**fill, "first": ENDED + TRIALS_EACH, "count": LIVE, "away": 0})
    statements = statements_of(database, of_a_running_service(snapshot, kind))
    assert len(statements) >= 10
    assert any(statement.startswith("DELETE") for statement in statements)
    assert costly(database, statements) == []
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE")
    assert costly(database, statements) == []
    database.close()
