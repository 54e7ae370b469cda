"""Experiments that leave memory: what is created is not looked for in the database."""

import asyncio

from det_contracts.commands import CreateExperiment
from det_contracts.expconf import complete
from services.kit.log_memory import MemoryLog
from services.kit.roots import get_loaded
from services.kit.rules import Call
from services.kit.runner import Runner
from services.kit.snapshot_store import DatabaseSaver
from services.searcher.app import RULES
from services.searcher.domain import State
from tests.fixtures.databases import open_sqlite
from tests.fixtures.paging import running
from tests.fixtures.waiting import until
from tests.searcher.conftest import STORAGE


class Replica:
    def __init__(self, database, log):
        self.saver = DatabaseSaver(database, "searcher", State, roots=RULES.roots)
        self.runner = Runner(RULES, log, self.saver)


def creation():
    text = {
        "entrypoint": "python3 train.py",
        "searcher": {"name": "single", "metric": "loss", "max_length": 10},
        "checkpoint_storage": STORAGE,
    }
    config = complete(text, seed=7, name="test")
    return CreateExperiment(user="ann", config=config, original_config="", activate=True)


def test_a_new_experiment_is_not_looked_for(tmp_path, monkeypatch):
    """The loop would stand still for it, between a submission and the start of its trial."""

    async def work(database):
        replica = Replica(database, MemoryLog())
        runner, saver = replica.runner, replica.saver
        looks, now, later = [], saver.pages_blocking, saver.query
        monkeypatch.setattr(saver, "pages_blocking", lambda *about: looks.append(about) or now(*about))
        monkeypatch.setattr(saver, "query", lambda *about: looks.append(about) or later(*about))
        async with running(replica):
            await runner.ready.wait()
            for number in range(1, 4):
                _, id = await runner.command(creation(), Call(f"c{number}", 0.0))
                assert id == number
                await until(lambda id=id: (t := get_loaded(runner.state.trials, id)) is not None and t.run)
                if number == 1:
                    # Whether the empty request key is anybody's, once and for all.
                    looks.clear()
            assert looks == []
            # One that nobody has created is looked for.
            assert runner.state.experiments.get(99) is None
            assert len(looks) == 1

    database = open_sqlite(tmp_path / "searcher.db", "searcher")
    try:
        asyncio.run(work(database))
    finally:
        database.close()
