"""A save runs statements that are built already: to build one takes longer than to run it."""

import asyncio
import importlib
from collections import Counter

import pytest
import sqlalchemy as sa
from sqlalchemy.sql import dml, selectable

from benchmarks.one_event import Size, history
from det_contracts import subjects
from det_contracts.envelope import Recorded
from services.kit.migrate import open_database
from services.metrics.domain import JudgedBatch

SERVICES = ("searcher", "scheduler", "metrics", "checkpoints", "webhooks", "gateway")
STATEMENTS = (selectable.Select, dml.Insert, dml.Update, dml.Delete)
EVENTS_PER_SAVE = 5


@pytest.fixture
def built(monkeypatch):
    """Counts the statements that are built."""
    counts = Counter()

    def counting(kind, build):
        def begin(statement, *arguments, **options):
            counts[kind.__name__] += 1
            build(statement, *arguments, **options)

        return begin

    for kind in STATEMENTS:
        monkeypatch.setattr(kind, "__init__", counting(kind, kind.__init__))
    return counts


@pytest.mark.parametrize("name", SERVICES)
def test_a_save_builds_no_statement_that_an_earlier_one_has_built(name, tmp_path, built):
    service = importlib.import_module(f"services.{name}.app").SERVICE
    database = open_database(f"sqlite:///{tmp_path}/service.db", service.rules.owner, service.folder)
    # Reports come by another stream.
    events = [e for e in history(Size(trials=40, large=20)) if not isinstance(e, JudgedBatch)]
    saver, run = service.saver(database), []
    sa.event.listen(database.engine, "before_cursor_execute", lambda *call: run.append(call[2]))

    async def work():
        state, _ = await saver.load()
        built_by_save = []
        for start in range(0, len(events), EVENTS_PER_SAVE):
            some = events[start : start + EVENTS_PER_SAVE]
            portion = [
                Recorded(position, event, "", "", 1.0, "", subjects.CONTROL)
                for position, event in enumerate(some, start + 1)
            ]
            keys = {key for recorded in portion for key in service.rules.evolve(state, recorded)}
            at = dict.fromkeys(service.rules.streams, 0) | {subjects.CONTROL: portion[-1].position}
            # What leaves memory is marked in the same transaction.
            roots = [] if saver.roots is None else [saver.roots.root_of(state, key) for key in keys]
            await saver.changed(state, keys, portion, at)
            for root in filter(None, roots):
                saver.record_eviction(root)
            built.clear()
            run.clear()
            assert await saver._save()
            built_by_save.append(built.total())
            # The first also looks for what other releases have stored.
            if len(built_by_save) > 1:
                assert sum("FROM positions" in statement for statement in run) == 1
        return built_by_save

    built_by_save = asyncio.run(work())
    database.close()
    # The first half has seen all kinds of events.
    half = len(built_by_save) // 2
    assert half > 10
    assert not any(built_by_save[half:]), built_by_save
