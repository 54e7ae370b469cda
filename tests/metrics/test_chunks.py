"""Reports in chunks that merge and are sealed all the time: the answers stay those of plain lists."""

import json
import random
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from det_contracts.events.metrics import PointsDropped
from det_contracts.queries import Buckets, LogPage, Reports, ReportWindow, Series, TrialSummaries
from services import metrics
from services.kit.database import Database
from services.kit.migrate import open_database
from services.metrics.reports import chunks
from services.metrics.reports.rows import reports as reports_of
from services.metrics.reports.tables import CHUNKS, COLUMNS, PARTITIONS, VALIDATIONS
from tests.fixtures.databases import POSTGRESQL_IN_FULL
from tests.fixtures.tiers import rest_in_full
from tests.metrics.test_rebuild import QUERIES, history
from tests.metrics.world import reports, training, validation


@pytest.fixture(params=[(3, 8, 4), (2, 4, 4), (16, 4096, 16)], ids=["small", "smallest", "as it is"])
def sizes(request, monkeypatch):
    """Chunks of the smallest sizes, so that a few reports go through every step."""
    fan, largest, smallest = request.param
    monkeypatch.setattr(chunks, "FAN", fan)
    monkeypatch.setattr(chunks, "LARGEST", largest)
    monkeypatch.setattr(chunks, "SMALLEST", smallest)
    monkeypatch.setattr("services.metrics.series.cells.CELL", 3)


def rows_in(tables, query):
    with tables.database.engine.begin() as connection:
        return connection.execute(query).all()


@POSTGRESQL_IN_FULL
@pytest.mark.parametrize("seed", rest_in_full(range(3)))
def test_answers_do_not_depend_on_how_reports_lie(world, tables, sizes, seed):
    chance = random.Random(seed)
    world.add(*history(chance))
    while any(world.step(stream) for stream in world.streams):
        if chance.random() < 0.6:
            tables.save(world)
    tables.save(world)
    answers = [tables.ask(query) for query in QUERIES]
    tables.drop()
    world.restart().fold()
    tables.save(world)
    assert [tables.ask(query) for query in QUERIES] == answers


@POSTGRESQL_IN_FULL
def test_every_report_comes_back_once_whatever_was_merged(saved, tables, sizes):
    chance = random.Random(1)
    expected, steps = [], 0
    for number in range(1, 120):
        count = chance.choice([1, 1, 2, 5, 20])
        taken = [steps + place for place in range(count)]
        steps += count
        chance.shuffle(taken)
        values = [chance.random() for _ in taken]
        saved(reports(training(taken, loss=values, step=taken), number=number))
        expected += zip(taken, values, strict=True)
    ask = saved()
    page = ask(Reports(trial_ids=[1], limit=10_000))
    assert [(r["steps_completed"], r["metrics"]["loss"]) for r in page["rows"]] == sorted(expected)
    assert all(r["metrics"]["step"] == r["steps_completed"] for r in page["rows"])
    (curve,) = ask(Series(trial_ids=[1], names=["loss"], limit=10_000))
    assert [(steps, values["loss"]) for steps, _, _, values in curve["points"]] == sorted(expected)


@POSTGRESQL_IN_FULL
def test_a_window_is_a_part_of_all_reports_by_steps(saved, tables, sizes):
    chance = random.Random(2)
    for number in range(1, 30):
        steps = chance.sample(range(500 * (number // 10), 500 * (number // 10) + 400), 7)
        group = chance.choice([training, validation])
        names = {"loss": [chance.random() for _ in steps]} | ({"b": [1] * 7} if number % 3 else {})
        saved(reports(group(steps, **names), number=number))
    saved(reports(training([50], loss=[2.0]), run=2))
    saved(reports(training([50], added=[7]), run=2, number=2))
    ask = saved()
    rows = ask(Reports(trial_ids=[1], archived=False, limit=1000))["rows"]
    rows.sort(key=lambda row: (row["steps_completed"], row["group"] == "validation"))
    assert any("added" in row["metrics"] for row in rows)
    for offset in (0, 1, 5, len(rows) - 3, len(rows)):
        for limit in (0, 1, 4, 1000):
            window = ask(ReportWindow(trial_id=1, offset=offset, limit=limit))
            assert window == {"total": len(rows), "rows": rows[offset : offset + limit]}
    mine = [row for row in rows if row["group"] == "validation"]
    assert ask(ReportWindow(trial_id=1, group="validation", limit=3)) == {
        "total": len(mine),
        "rows": mine[:3],
    }
    assert ask(ReportWindow(trial_id=9, limit=3)) == {"total": 0, "rows": []}


@POSTGRESQL_IN_FULL
def test_a_series_has_few_unsealed_chunks(saved, tables):
    for number in range(1, 400):
        saved(reports(training([number], loss=[0.5]), number=number))
    open_ = rows_in(tables, sa.select(CHUNKS.c.level, CHUNKS.c.reports))
    assert sum(reports for _, reports in open_) == 399
    assert len(open_) < 3 * chunks.FAN
    saved(reports(training(range(1000, 6000), loss=[0.5] * 5000), number=1000))
    sealed = rows_in(tables, sa.select(CHUNKS.c.reports).where(CHUNKS.c.level == chunks.SEALED))
    assert [reports for (reports,) in sealed] == [4096]
    assert len(rows_in(tables, sa.select(COLUMNS.c.place))) == 1


def test_what_a_new_run_overtakes_is_cut_out_of_its_chunk(saved, tables, sizes):
    ask = saved(reports(training(range(100), loss=[1.0] * 100), validation([40, 60], loss=[0.4, 0.6])))
    saved(reports(training([50], loss=[2.0]), run=2))
    rows = ask(Reports(trial_ids=[1], group="training", limit=1000))["rows"]
    assert [r["steps_completed"] for r in rows if r["archived"]] == list(range(50, 100))
    assert [r["steps_completed"] for r in rows if not r["archived"]] == [*range(50), 50]
    (curve,) = ask(Buckets(trial_ids=[1], names=["loss"], group="training"))
    assert (curve["count"], curve["last"][-1]) == (51, 2.0)
    (left,) = ask(Buckets(trial_ids=[1], names=["loss"], group="validation"))
    assert left["batches"] == [40]


@POSTGRESQL_IN_FULL
def test_many_names_make_short_chunks(saved, tables, monkeypatch):
    monkeypatch.setattr(chunks, "VALUES", 30_000)
    for number in range(1, 40):
        names = {f"n{n}": [n] if n % 2 else [n / 7] for n in range(1000)} | {"text": [f"{number}"]}
        ask = saved(reports(training([number], **names), number=number))
    (sealed,) = rows_in(tables, sa.select(CHUNKS.c.reports).where(CHUNKS.c.level == chunks.SEALED))
    assert sealed[0] == chunks.chunk_capacity(1001)
    assert chunks.SMALLEST < sealed[0] < 40
    (curve,) = ask(Buckets(trial_ids=[1], names=["n778"]))
    assert curve["last"] == [778 / 7] * 39
    page = ask(Reports(trial_ids=[1]))["rows"]
    assert [row["metrics"]["n777"] for row in page] == [777] * len(page)
    assert [row["metrics"]["text"] for row in page] == [str(place + 1) for place in range(len(page))]


def test_dropped_points_are_deleted_in_any_order_of_folding(world, tables):
    world.add(reports(training(range(5000), loss=[0.5] * 5000), validation([10], loss=[0.5]), trial=4))
    world.add(reports(training([1], loss=[1.0]), trial=5))
    world.add(PointsDropped(trial_id=4, through=1, reason="old"))
    world.add(reports(training([6000], loss=[0.25]), trial=4, number=2))
    questions = [*(query for query in QUERIES if not isinstance(query, LogPage)), TrialSummaries([4, 5])]
    questions += [Reports(trial_ids=[4, 5]), Buckets(trial_ids=[4, 5], names=["loss"])]
    answers = []
    for order in (["CONTROL", "REPORTS"], ["REPORTS", "CONTROL"]):
        for together in (True, False):
            tables.drop()
            world.restart()
            for stream in order:
                while world.step(stream):
                    if not together:
                        tables.save(world)
            tables.save(world)
            answers.append([tables.ask(query) for query in questions])
    assert answers[1:] == answers[:1] * 3
    *_, summaries, rows, _ = answers[0]
    assert summaries["4"]["summary"]["training"]["loss"]["count"] == 5001
    assert summaries["4"]["best_validation"]["steps_completed"] == 10
    assert [(row["trial_id"], row["steps_completed"]) for row in rows["rows"]] == [(4, 6000), (5, 1)]


def test_nothing_is_left_of_what_was_deleted(saved, tables):
    from det_contracts.events import searcher

    saved(reports(training(range(5000), loss=[1.0] * 5000), validation([1], loss=[1.0])))
    saved(searcher.ExperimentDeleted(1, "DELETED", trial_ids=[1], reason="asked"))
    for table in (CHUNKS, COLUMNS, PARTITIONS):
        assert rows_in(tables, sa.select(table)) == []


def test_reports_of_the_first_schema_are_taken_along(tmp_path):
    url = f"sqlite:///{tmp_path}/old.db"
    database = Database(url)
    config = Config()
    config.set_main_option("script_location", str(Path(metrics.__file__).parent / "migrations"))
    rows = [
        {"id": n, "trial_id": 1, "run": 1 + (n >= 90), "kind": kind, "steps": n % 90, "at": 5.5 + n,
         "ranked": True,
         "metrics": json.dumps({"loss": n / 3} if n % 3 else {"loss": n, "note": "x"}).encode(),
         "batch_metrics": b'[{"a":1}]' if n == 4 else None, "metric": n / 3, "archived": 50 <= n < 90}
        for n, kind in enumerate(["training", "validation"] * 50)
    ]  # fmt: skip
    with database.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        table = sa.Table("reports", sa.MetaData(), autoload_with=connection)
        connection.execute(sa.insert(table), rows)
    database.close()
    database = open_database(url, "metrics")
    with database.engine.begin() as connection:
        page = reports_of(connection, Reports(trial_ids=[1]))["rows"]
        ranked = connection.execute(sa.select(VALIDATIONS.c.id, VALIDATIONS.c.metric)).all()
    rows_by_id = {row["id"]: row for row in msgspec.json.decode(msgspec.json.encode(page))}
    assert len(rows_by_id) == 100
    for row in rows:
        found_row = rows_by_id[row["id"]]
        assert found_row["metrics"] == json.loads(row["metrics"])
        names = {
            "trial_id": "trial_id",
            "run": "run",
            "group": "kind",
            "steps_completed": "steps",
            "at": "at",
        }
        assert {name: found_row[name] for name in names} == {name: row[old] for name, old in names.items()}
        assert found_row["archived"] == row["archived"]
    assert rows_by_id[4]["batch_metrics"] == [{"a": 1}]
    assert ranked == [(row["id"], row["metric"]) for row in rows if row["kind"] == "validation"]
    database.close()
