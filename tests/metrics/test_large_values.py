"""One script, whatever the size of its values: tables and answers stay small enough for their databases."""

import random

import msgspec
import pytest
import sqlalchemy as sa

from det_contracts.queries import Reports, ReportWindow, Series, TrialSummaries
from services.metrics import paging
from services.metrics.reports import chunks, open_chunks, ranking, rows
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


def test_a_place_in_a_window_is_that_of_a_report_however_many_keys_were_added(world, tables, small_bytes):
    """Keys beyond what is merged are rows of their own elsewhere, and shifted the places behind them."""
    world.add(reports(training([6, 7, 8], loss=[6.0, 7.0, 8.0]), validation([7], loss=[0.5]))).fold()
    for number in range(2, 14):
        world.add(reports(training([7], **{f"name{number}": [text(number, 8000)]}), number=number)).fold()
        tables.save(world)
    assert len(tables.ask(Reports(trial_ids=[1]))["rows"]) > 4
    windows = [tables.ask(ReportWindow(trial_id=1, offset=offset, limit=1)) for offset in range(5)]
    assert [window["total"] for window in windows] == [4] * 5
    places = [
        [(row["steps_completed"], row["group"], row["metrics"]["loss"]) for row in window["rows"]]
        for window in windows
    ]
    assert places == [
        [(6, "training", 6.0)],
        [(7, "training", 7.0)],
        [(7, "validation", 0.5)],
        [(8, "training", 8.0)],
        [],
    ]
    assert len(windows[1]["rows"][0]["metrics"]) > 3, "what fits is merged"


def test_overlapping_reports_are_not_all_in_memory(world, tables, monkeypatch):
    """A script can make any number of partitions, each with a chunk of megabytes over the same steps."""
    monkeypatch.setattr(open_chunks, "OPEN_BYTES", 1 << 20)
    for number in range(1, 41):
        name = {f"name{number}": [text(step, 2000) for step in range(20)]}
        world.add(reports(training(range(number, 4000, 200), **name), number=number)).fold()
        tables.save(world)
    sizes = []
    get = open_chunks.OpenChunks.get

    def measured(self, id):
        chunk = get(self, id)
        sizes.append(self._bytes)
        return chunk

    monkeypatch.setattr(open_chunks.OpenChunks, "get", measured)
    stored = [row for page in pages(tables) for row in page]
    assert [row["steps_completed"] for row in stored] == [
        first + number for first in range(0, 4000, 200) for number in range(1, 41)
    ]
    assert len(sizes) > 40
    assert max(sizes) < 2 << 20
    window = tables.ask(ReportWindow(trial_id=1, offset=300, limit=100))
    assert window["rows"] == stored[300:400]


def test_a_window_holds_no_more_than_an_answer_may(world, tables, monkeypatch):
    monkeypatch.setattr(rows, "PAGE_BYTES", 20_000)
    monkeypatch.setattr(paging, "PAGE_BYTES", 20_000)
    for number in range(1, 13):
        world.add(reports(training([number], text=[text(number, 6000)]), number=number)).fold()
    world.add(reports(validation([3], loss=[0.5]), number=13)).fold()
    tables.save(world)
    window = tables.ask(ReportWindow(trial_id=1, offset=1, limit=10))
    assert [(row["steps_completed"], row["group"]) for row in window["rows"]] == [
        (2, "training"),
        (3, "training"),
        (3, "validation"),
        (4, "training"),
    ]
