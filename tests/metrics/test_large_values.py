"""One script, whatever the size of its values: tables and answers stay small enough for their databases."""

import random

import msgspec
import pytest
import sqlalchemy as sa

from det_contracts.queries import Reports, Series, TrialSummaries
from services.metrics.reports import chunks, ranking, rows
from services.metrics.reports.tables import CHUNKS, COLUMNS, SUMMARIES, VALIDATIONS
from tests.metrics.test_hostile_reports import statements
from tests.metrics.world import reports, series, training, validation


def text(number, size):
    """Text that compresses badly."""
    return random.Random(number).randbytes(size // 2).hex()


@pytest.fixture
def small_bytes(monkeypatch):
    """A hundredth of the real limits."""
    monkeypatch.setattr(chunks, "FAN", 3)
    monkeypatch.setattr(chunks, "BYTES", 20_000)
    monkeypatch.setattr(rows, "MERGED_BYTES", 40_000)
    monkeypatch.setattr(ranking, "MERGED_BYTES", 40_000)


def largest(tables):
    """The size of the largest value in the tables of reports."""
    values = [
        column
        for table in (CHUNKS, COLUMNS, SUMMARIES, VALIDATIONS)
        for column in table.c
        if isinstance(column.type, sa.LargeBinary)
    ]
    with tables.database.engine.begin() as connection:
        sizes = [connection.execute(sa.select(sa.func.max(sa.func.length(of)))).scalar() for of in values]
        return max(filter(None, sizes))


HOW = {
    "one name": lambda number: training([number], text=[text(number, 8000)]),
    "ever more names": lambda number: training([number], **{f"name{number}": [text(number, 8000)]}),
    "batch metrics": lambda number: series("training", [number], {"a": [1.0]}, [[{"t": text(number, 8000)}]]),
    "added to one validation": lambda number: validation([7], **{f"name{number}": [text(number, 8000)]}),
    "many at once": lambda number: training(
        range(40 * number, 40 * number + 40), text=[text(n, 800) for n in range(40)]
    ),
}


@pytest.mark.parametrize("how", HOW)
def test_no_value_in_the_tables_grows_without_end(world, tables, small_bytes, how):
    """A database takes a value of 1 GB at most, and what cannot be saved stops the service for everybody."""
    for number in range(1, 61):
        world.add(reports(HOW[how](number), number=number)).fold()
        tables.save(world)
    # Chunks that are not full are merged, up to `FAN` of each of three levels.
    assert largest(tables) < 3 * 3 * 20_000
    assert len(tables.ask(Series(trial_ids=[1], names=["a", "text", "name3"]))) == (how == "batch metrics")
    rows = [row for page in pages(tables) for row in page]
    expected = {"many at once": 2400, "added to one validation": None}.get(how, 60)
    assert expected is None or len(rows) == expected
    if how == "batch metrics":
        assert [row["batch_metrics"] for row in rows] == [[{"t": text(n, 8000)}] for n in range(1, 61)]
    else:
        names = {(row["steps_completed"], name): v for row in rows for name, v in row["metrics"].items()}
        assert len(names) == (expected or 60)
        assert len("".join(names.values())) == (1_920_000 if how == "many at once" else 480_000)


def pages(tables):
    after = None
    while True:
        page = tables.ask(Reports(trial_ids=[1], after=after, limit=0))
        assert len(msgspec.json.encode(page)) < 4 * 1024 * 1024
        yield page["rows"]
        if not page["more"]:
            return
        last = page["rows"][-1]
        after = (last["trial_id"], last["run"], last["steps_completed"], last["id"])


def test_the_last_value_of_a_metric_is_kept_in_part(world, tables):
    long, wide = "é" * 5000, {f"x{n}": n for n in range(1000)}
    values = {"text": "short", "long": long, "map": {"a": [1]}, "wide": wide, "number": 10**30, "loss": 0.5}
    world.add(reports(training([1], **{name: [value] for name, value in values.items()}))).fold()
    tables.save(world)
    summary = tables.ask(TrialSummaries([1]))["1"]["summary"]["training"]
    last_values = {name: statistics["last"] for name, statistics in summary.items()}
    assert last_values == values | {"long": "é" * 500 + "…", "wide": None}
    (row,) = tables.ask(Reports(trial_ids=[1]))["rows"]
    assert row["metrics"] == values


def test_keys_added_to_a_validation_in_one_commit_are_written_once(world, tables):
    """A message may hold thousands of them, and each would read and write all that is there."""
    base = validation([7], loss=[0.5])
    added = [validation([7], **{f"name{n}": [float(n)]}) for n in range(300)]
    world.add(reports(base, *added, number=1)).fold()
    with statements(tables) as executed:
        tables.save(world)
    assert sum("UPDATE validations" in str(statement) for statement in executed) == 1
    latest = tables.ask(TrialSummaries([1]))["1"]["latest_validation"]
    assert latest["metrics"] == {"loss": 0.5} | {f"name{n}": float(n) for n in range(300)}


def test_statistics_are_recounted_without_long_texts_in_memory(world, tables, small_bytes):
    for number in range(1, 31):
        world.add(reports(training([number], text=[text(number, 8000)], loss=[0.5]), number=number)).fold()
        tables.save(world)
    world.add(reports(training([21], loss=[0.25]), run=2)).fold()
    tables.save(world)
    summary = tables.ask(TrialSummaries([1]))["1"]["summary"]["training"]
    assert (summary["text"]["count"], summary["text"]["last"]) == (20, text(20, 8000)[:500] + "…")
    assert (summary["loss"]["count"], summary["loss"]["last"]) == (21, 0.25)
