"""What goes at once takes as many statements as one record, and what is saved later the same statements.

To build one takes longer than to run it.
"""

import pytest
import sqlalchemy as sa

from det_contracts.events.scheduler import Part
from services.catalogue.domain import Allocation
from services.catalogue.runs import RUNS
from services.catalogue.store import CHECKPOINTS, write_rows
from services.catalogue.usage_days import USAGE
from services.kit.migrate import open_database
from services.kit.snapshot import Snapshot
from services.searcher.domain.state import Named, State


@pytest.fixture
def gateway(tmp_path):
    database = open_database(f"sqlite:///{tmp_path / 'gateway.db'}", "gateway")
    yield database
    database.close()


def statements_of(database, work):
    statements = []

    def note(_connection, _cursor, statement, *_):
        statements.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", note)
    with database.engine.begin() as connection:
        work(connection)
    sa.event.remove(database.engine, "before_cursor_execute", note)
    return statements


def rows_of(database, table):
    with database.engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar()


def run(number):
    """One that used a slot for a minute, on a day of its own."""
    began = number * 86_400.0
    return Allocation(
        id=f"{number}.a.1",
        task_id=f"{number}.a",
        kind="TRIAL",
        experiment_id=number,
        trial_id=number,
        run=1,
        slots=1,
        pool="a",
        priority=0,
        requested_at=began,
        started_at=began,
        ended_at=began + 60.0,
        members=(Part("w", (0,), 0),),
    )


def test_records(gateway):
    snapshot, at = Snapshot("searcher", State), iter(range(1, 99))

    def gone(count):
        records = {("tasks", f"{n}.a"): Named(n) for n in range(count)}
        with gateway.engine.begin() as connection:
            assert snapshot.save(connection, {**records, ("tasks", "stays"): Named(0)}, {"CONTROL": next(at)})
        dropped = dict.fromkeys(records)
        return statements_of(gateway, lambda c: snapshot.save(c, dropped, {"CONTROL": next(at)}))

    assert gone(60) == gone(1)
    with gateway.engine.connect() as connection:
        assert list(snapshot.load(connection)[0].tasks) == ["stays"]


def test_rows_of_the_catalogue(gateway):
    def gone(count):
        runs = {("allocations", run(n).id): run(n) for n in range(1, count + 1)}
        checkpoints = {("checkpoints", f"c{n}"): None for n in range(count)}
        with gateway.engine.begin() as connection:
            write_rows(connection, runs, ())
            row = {"trial_id": 1, "experiment_id": 1, "steps": 1, "stored_at": 1.0, "state": "COMPLETED"}
            connection.execute(sa.insert(CHECKPOINTS), [row | {"uuid": f"c{n}"} for n in range(count)])
        assert rows_of(gateway, RUNS) == rows_of(gateway, USAGE) == rows_of(gateway, CHECKPOINTS) == count
        dropped = dict.fromkeys(runs) | checkpoints
        statements = statements_of(gateway, lambda c: write_rows(c, dropped, ()))
        for table in (RUNS, USAGE, CHECKPOINTS):
            assert rows_of(gateway, table) == 0, table.name
        return statements

    assert len(gone(60)) == len(gone(1))


def test_a_later_save_builds_no_statement_again(gateway):
    snapshot, executed = Snapshot("searcher", State), []
    sa.event.listen(gateway.engine, "before_execute", lambda _c, statement, *_: executed.append(statement))

    def writes_of_a_save(position):
        executed.clear()
        saved, gone = {("tasks", f"{position}.a"): Named(position)}, {("tasks", f"{position - 1}.a"): None}
        runs = {("allocations", run(position).id): run(position), ("allocations", run(position - 1).id): None}
        with gateway.engine.begin() as connection:
            assert snapshot.save(connection, saved | gone, {"CONTROL": position})
            write_rows(connection, runs, ())
        return [statement for statement in executed if isinstance(statement, sa.Insert | sa.Delete)]

    # The first one finds no run to replace.
    _, earlier, later = (writes_of_a_save(position) for position in (2, 3, 4))
    assert len(earlier) >= 6
    assert [str(b) for a, b in zip(earlier, later, strict=True) if a is not b] == []
