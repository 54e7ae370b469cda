"""Lines that are too old or too many are removed."""

import random

import sqlalchemy as sa

from det_contracts.events.metrics import LogsTrimmed
from det_contracts.queries import LogFields, LogPage, StoredLines
from services.metrics.logs.tables import CHUNKS
from services.metrics.settings import MetricsSettings
from services.metrics.trimming import required_trim
from tests.metrics.test_logs import all_of, texts, told_in_commits
from tests.metrics.world import lines


def test_trimmed_lines_are_deleted_in_any_order_of_folding(world, tables, small):
    told_in_commits(world, tables, random.Random(8))
    last = len(world.streams["LOGS"])
    before = all_of(tables.ask, LogPage(task_id="1.a"))
    world.add(LogsTrimmed(through=last // 2, reason="older than 30 days")).fold()
    tables.save(world)
    retained_lines = [line for line in before if line["id"] >= (last // 2 + 1) * 4096]
    assert 0 < len(retained_lines) < len(before)
    assert all_of(tables.ask, LogPage(task_id="1.a")) == retained_lines
    assert tables.ask(LogFields("1.a"))["lines"] == len(retained_lines)
    state = world.dump()
    world.add(lines("one more", offset=10_000)).fold()
    tables.save(world)
    (more,) = tables.ask(LogPage(task_id="1.a", descending=True, limit=1))["lines"]
    assert more["number"] == len(before) + 1
    for first in ("CONTROL", "LOGS"):
        tables.drop()
        world.restart()
        while world.step(first):
            pass
        world.fold()
        tables.save(world)
        assert world.dump()["trimmed"] == state["trimmed"]
        assert texts(tables.ask(LogPage(task_id="1.a", limit=1, descending=True))) == ["one more"]
        rebuilt_lines = all_of(tables.ask, LogPage(task_id="1.a"))[:-1]
        assert rebuilt_lines == retained_lines


NOW = 1000 * 86_400.0


def needed_trim(tables, settings):
    stored = tables.ask(StoredLines(before=NOW - settings.log_keep_days * 86_400.0, now=NOW))
    return tables.database.read_sync(lambda connection: required_trim(connection, settings, stored))


def test_what_is_too_old_goes_up_to_the_first_line_that_is_not(world, tables, small):
    days = [*range(900, 960), 2000, 955, *range(960, 1000)]
    for offset, day in enumerate(days):
        world.add(lines(f"day {day}", offset=offset, at=day * 86_400.0)).fold()
        if day % 7:
            tables.save(world)
    tables.save(world)

    def trim(**settings):
        return needed_trim(tables, MetricsSettings(**settings))

    # Position 58 holds the first line that is younger; a clock that is years ahead holds nothing.
    assert trim(log_keep_days=43.5).through == 57
    assert trim(log_keep_days=43.5).reason == "older than 43.5 days"
    assert trim(log_keep_days=36.0, log_keep_mib=10).through == days.index(964)
    assert trim(log_keep_days=0.5).through == len(days)
    assert trim(log_keep_days=2000.0).through == 0


def test_what_is_too_much_goes_oldest_first(world, tables, monkeypatch):
    chance = random.Random(2)
    for number in range(40):
        text = "".join(chance.choices("abcdefghijklmnop", k=100_000))
        world.add(lines(text, offset=number, task=f"{number % 3}.a")).fold()
        tables.save(world)
    with tables.database.engine.connect() as connection:
        stored = dict(connection.execute(sa.select(CHUNKS.c.last_id, CHUNKS.c.stored)).all())
    settings = MetricsSettings(log_keep_mib=1)
    trim = needed_trim(tables, settings)
    ends = sorted(stored)
    left = sum(stored[end] for end in ends if end >= (trim.through + 1) * 4096)
    assert 0 < left <= 1024 * 1024
    world.add(LogsTrimmed(through=trim.through, reason=trim.reason)).fold()
    tables.save(world)
    assert needed_trim(tables, settings).through == 0
    assert world.state.trimmed["LOGS"].through == trim.through
