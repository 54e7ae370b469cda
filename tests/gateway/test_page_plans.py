"""The usual pages come from an index in order, on both databases: none sorts, none reads a whole table."""

import pytest
import sqlalchemy as sa

from services.catalogue import audit, listing, runs
from services.catalogue.listing import ExperimentFilter
from services.kit.paging import Window

PAGE = Window(0, 20, descending=True)
PAGES = {
    "experiments": lambda c: listing.experiment_page(c, ExperimentFilter(archived=False), "ID", PAGE),
    "experiments of a project": lambda c: listing.experiment_page(
        c, ExperimentFilter(archived=False, project_id=7), "ID", PAGE
    ),
    "audit": lambda c: audit.rows_before(c, audit.Filter(), 50),
    "audit of a user": lambda c: audit.rows_before(c, audit.Filter(users=("ann",)), 50),
    "runs": lambda c: runs.runs_page(c, 1e9, 2e9, None, 1000),
    "runs after others": lambda c: runs.runs_page(c, 1e9, 2e9, (1.5e9, "1.r1.1"), 1000),
    "audit of a thing": lambda c: audit.rows_before(c, audit.Filter(about="experiment 7"), 50, before=9),
}


def plans(database, page, ways=()):
    """What the database does for each statement of a page, in its own words."""
    statements = []

    def note(connection, cursor, statement, parameters, context, many):
        statements.append((statement, parameters))

    with database.engine.begin() as connection:
        sqlite = connection.dialect.name == "sqlite"
        if not sqlite:
            # A table without rows is read whole, if that is allowed.
            for way in ("seqscan", "sort", "bitmapscan"):
                connection.exec_driver_sql(f"SET LOCAL enable_{way} = {'on' if way in ways else 'off'}")
        sa.event.listen(database.engine, "before_cursor_execute", note)
        page(connection)
        sa.event.remove(database.engine, "before_cursor_execute", note)
        explain = "EXPLAIN QUERY PLAN" if sqlite else "EXPLAIN"
        column = 3 if sqlite else 0
        return {
            statement: [
                row[column] for row in connection.exec_driver_sql(f"{explain} {statement}", parameters)
            ]
            for statement, parameters in statements
        }


def test_the_few_that_are_active_are_found_among_those_that_ended(database):
    active = ExperimentFilter(states=["ACTIVE", "RUNNING"])
    query_plans = plans(database, lambda c: listing.all_experiment_ids(c, active), ("sort", "bitmapscan"))
    ((statement, steps),) = query_plans.items()
    text = " ".join(steps)
    # By each of the two columns that say it.
    assert "ix_experiments_state" in text, (statement, steps)
    assert "ix_experiments_shown_state" in text, (statement, steps)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_sorts_nothing(database, page):
    query_plans = plans(database, page)
    assert query_plans
    for statement, steps in query_plans.items():
        assert not [step for step in steps if "B-TREE" in step or "Sort" in step], (statement, steps)
        assert not [step for step in steps if "Seq Scan" in step], (statement, steps)
        # In the order of an index, up to the end of the page.
        assert not [step for step in steps if step.startswith("SCAN") and "INDEX" not in step], (
            statement,
            steps,
        )
