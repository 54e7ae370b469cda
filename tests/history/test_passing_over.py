"""What a service passes over has no part in its state, its read model or what else follows from its log."""

import asyncio
import dataclasses
import importlib
from functools import cache
from pathlib import Path

import pytest
import sqlalchemy as sa

from det_contracts import subjects
from det_contracts.envelope import PassedOver
from services.kit.log_memory import MemoryLog
from services.kit.records import read_event
from services.kit.rules import dump
from services.kit.runner import Runner
from services.kit.service_events import KINDS
from tests.fixtures.databases import open_sqlite
from tests.fixtures.waiting import until
from tests.history.facts import ALL
from tests.history.recording import read
from tests.simulation.simulate import simulate

PASSING = sorted(owner for owner, rules in ALL.items() if rules.reads is not None)
HISTORY = Path(__file__).parent / "2026-11.jsonl.gz"


@cache
def simulated():
    """CONTROL of a world with faults, damaged messages and those of a newer release among it."""
    return simulate(7).messages


def folded(rules, messages, read):
    """The state in the end, and how many messages were passed over."""
    state, passed_over = rules.state(), 0
    for message in messages:
        recorded = read(message, subjects.CONTROL)
        if isinstance(recorded, PassedOver):
            passed_over += 1
        else:
            list(rules.evolve(state, recorded))
    return dump(state), passed_over


@pytest.mark.parametrize("owner", PASSING)
def test_a_simulated_log_is_folded_to_the_same_state(owner):
    rules, messages = ALL[owner], simulated()
    state, passed_over = folded(rules, messages, rules.reader(subjects.CONTROL, KINDS, dict))
    assert (state, 0) == folded(rules, messages, read_event)
    assert passed_over > len(messages) / 10


def rows(rules, messages, database):
    """All that a replica keeps of a log in its database."""
    service = importlib.import_module(f"services.{rules.owner}.app").SERVICE
    # Saved once, at the end, so that what is kept of each save does not depend on when it was.
    service = dataclasses.replace(service, backlog_limit=10**9)
    log = MemoryLog()
    log.streams |= messages
    saver = service.saver(database)
    runner = Runner(rules, log, saver, is_leader=lambda: True, clock=lambda: 0.0)

    async def work():
        task = asyncio.create_task(runner.run())
        ends = {stream: len(messages[stream]) for stream in rules.streams}
        await until(lambda: task.done() or (runner.ready.is_set() and runner.positions == ends))
        await saver.wait_for_position(ends[subjects.CONTROL])
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(work())
    with database.engine.connect() as connection:
        tables = sa.MetaData()
        tables.reflect(connection)
        return {
            table.name: sorted(map(tuple, connection.execute(table.select())), key=repr)
            for table in tables.sorted_tables
        }


@pytest.mark.parametrize("owner", PASSING)
def test_a_recorded_log_leaves_the_same_database(owner, tmp_path, monkeypatch):
    monkeypatch.setattr("services.kit.snapshot_store.SAVE_EVERY_S", 600.0)
    rules, (_, messages) = ALL[owner], read(HISTORY)
    rules = dataclasses.replace(rules, react=lambda *_: (), timers={})
    whole = rows(dataclasses.replace(rules, reads=None), messages, open_sqlite(tmp_path / "whole.db", owner))
    assert rows(rules, messages, open_sqlite(tmp_path / "passing.db", owner)) == whole
    assert whole["snapshots"]
