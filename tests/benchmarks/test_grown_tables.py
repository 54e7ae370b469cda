"""A database that was grown holds what folding the same cycles leaves behind."""

import asyncio
import importlib

import pytest

from benchmarks.aged import Life
from benchmarks.kit import grown_tables
from benchmarks.kit.ages import Cycle, Shift, recorded
from services.kit.cancellation import cancel_and_wait
from services.kit.migrate import open_database
from services.kit.snapshot_store import DatabaseSaver

CYCLE = Cycle(experiments=2, each=3)
FIRST = Shift(experiments=0, trials=0, at=1_700_000_000.0)
OWNERS = ("searcher", "scheduler", "metrics", "checkpoints", "webhooks", "gateway")


def lived(owner, file, cycles):
    """A service folds so many cycles; returns what its database held after each."""
    return asyncio.run(_lived(owner, file, cycles))


async def _lived(owner, file, cycles):
    service = importlib.import_module(f"services.{owner}.app").SERVICE
    rules, database = service.rules, open_database(f"sqlite:///{file}", owner)
    saver = DatabaseSaver(
        database,
        owner,
        rules.state,
        fold_version=rules.fold_version,
        roots=rules.roots,
        projection=service.projection,
    )
    saving = asyncio.create_task(saver.run())
    life, tables = Life(rules, saver, (await saver.load())[0], {"CONTROL": 0}), []
    for number in range(cycles):
        await life.take(list(recorded(CYCLE.events, CYCLE.later(FIRST, number))))
        await saver.wait_for_position(life.positions["CONTROL"], within_s=60)
        tables.append(grown_tables.read(file))
    await cancel_and_wait(saving)
    database.close()
    return tables


@pytest.mark.parametrize("owner", OWNERS)
def test_what_is_grown_is_what_would_have_been_folded(owner, tmp_path):
    folded = lived(owner, tmp_path / "folded.db", 6)[-1]
    first, second, _ = lived(owner, tmp_path / "grown.db", 3)
    grown_tables.grow(tmp_path / "grown.db", first, second, 3)
    grown = grown_tables.read(tmp_path / "grown.db")
    assert len(grown["snapshots"]) > len(second["snapshots"])
    assert grown_tables.differences((folded, grown)) == []


def test_what_does_not_only_grow_is_refused(tmp_path):
    first, second, _ = lived("searcher", tmp_path / "grown.db", 3)
    key = next(key for key in second["snapshots"] if key not in first["snapshots"])
    del second["snapshots"][key]
    with pytest.raises(grown_tables.Diverged, match="snapshots"):
        grown_tables.grow(tmp_path / "grown.db", first, second, 3)
