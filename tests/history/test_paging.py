"""A recorded log is folded to the same records where all that can leave the memory leaves it at once."""

import asyncio
from dataclasses import fields
from pathlib import Path

import pytest

from services.kit import pager
from services.kit.log_memory import MemoryLog
from services.kit.rules import record_types
from services.kit.runner import Runner
from services.kit.snapshot_store import DatabaseSaver
from services.kit.sorted_keys import SortedKeys
from tests.fixtures.databases import open_sqlite
from tests.fixtures.waiting import until
from tests.history.facts import ALL, fold
from tests.history.recording import read

PAGED = [owner for owner, rules in ALL.items() if rules.roots is not None]
HISTORY = Path(__file__).parent / "2026-11.jsonl.gz"


async def folded(rules, log, database):
    """A replica that has read and saved all of a log, and decides nothing; it has stopped."""
    saver = DatabaseSaver(
        database, rules.owner, rules.state, fold_version=rules.fold_version, roots=rules.roots
    )
    runner = Runner(rules, log, saver, is_leader=lambda: False)
    task = asyncio.create_task(runner.run())
    await until(
        lambda: (
            task.done()
            or (
                all(len(log.streams[s]) == at for s, at in runner.positions.items()) and runner.ready.is_set()
            )
        )
    )
    await saver.wait_for_position(runner.positions["CONTROL"])
    task.cancel()
    await asyncio.wait([task])
    return runner


def indexes(state):
    """What the indexes of a state say of all that is loaded."""
    by_name = {field.name: getattr(state, field.name) for field in fields(state) if not field.init}
    plain = {name: dict(index) for name, index in by_name.items() if isinstance(index, dict)}
    return plain | {name: list(index) for name, index in by_name.items() if isinstance(index, SortedKeys)}


@pytest.mark.parametrize("owner", PAGED)
def test_what_comes_and_goes_is_as_if_it_stayed(owner, tmp_path, monkeypatch):
    monkeypatch.setattr(pager, "MAX_IDLE_RECORDS", 0)
    monkeypatch.setattr("services.kit.snapshot_store.SAVE_EVERY_S", 0.001)
    monkeypatch.setattr("services.kit.log_memory.READ_LIMIT", 20)
    rules, log = ALL[owner], MemoryLog()
    log.streams |= read(HISTORY)[1]
    right = fold(rules, log.streams)
    database = open_sqlite(tmp_path / f"{owner}.db", owner)
    for _ in range(2):
        # The second one begins with what the first one has left in the database.
        runner = asyncio.run(folded(rules, log, database))
    assert runner.pager.roots_evicted > 0 or any(
        len(dict(getattr(runner.state, table))) < len(getattr(right, table))
        for table in rules.roots.root_lookups
    )
    for table in record_types(rules.state):
        for id in getattr(right, table):
            assert getattr(runner.state, table).get(id) == getattr(right, table)[id], (table, id)
        assert dict(getattr(runner.state, table)) == getattr(right, table), table
    assert indexes(runner.state) == indexes(right)
    database.close()
