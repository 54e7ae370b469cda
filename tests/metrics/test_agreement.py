"""Two shards on one log in memory: nothing is read before both have joined; verdicts are stated once."""

import asyncio
import contextlib
from types import SimpleNamespace

import msgspec
import pytest

from det_contracts import codec, subjects
from det_contracts.envelope import Recorded
from det_contracts.events import Decision, metrics
from det_contracts.events.searcher import TrialCreated, TrialEnded
from det_contracts.queries import Reports
from det_contracts.reports import ReportBatch
from services.kit.log import Draft
from services.kit.log_memory import MemoryLog
from services.kit.runner import Runner
from services.kit.settings import BadSettings
from services.kit.snapshot_store import DatabaseSaver
from services.metrics.app import service_of
from services.metrics.domain import State, evolve
from services.metrics.settings import MetricsSettings
from services.metrics.settling import settle_ended_trials
from services.metrics.sharing.agreement import agree
from services.metrics.store import project
from tests.fixtures.databases import open_sqlite
from tests.fixtures.waiting import until
from tests.metrics.conftest import Tables
from tests.metrics.world import reports, validation


async def put(log, *records):
    for record in records:
        id = f"{type(record).__name__}-{len(log.streams['CONTROL'])}-{len(log.streams['REPORTS'])}"
        if isinstance(record, ReportBatch):
            await log.append(Draft(subjects.reports(record.trial_id), msgspec.json.encode(record), id))
        else:
            body = codec.encode(record, id=id, actor="t", at=0.0)
            await log.append(Draft(codec.subject_of(record), body, id))


def created(trial, experiment=1):
    return TrialCreated(
        trial_id=trial,
        experiment_id=experiment,
        request_id=f"r{trial}",
        task_id=f"{experiment}.{trial}",
        seed=1,
        hparams={},
        reason="asked",
    )


def stated(log, kind):
    records = [codec.decode(m.body, m.position) for m in log.streams[subjects.CONTROL]]
    return [(record.actor, record.event) for record in records if type(record.event) is kind]


class Process:
    """One process of a shard, with its own database."""

    def __init__(self, log, folder, shard, shards):
        settings = MetricsSettings(metrics_shard=shard, metrics_shards=shards)
        self.tables = Tables(open_sqlite(folder / f"{shard}.db", "metrics"))
        rules = service_of(settings).rules
        saver = DatabaseSaver(self.tables.database, rules.owner, State, projection=project)
        self.parts = SimpleNamespace(
            runner=Runner(rules, log, saver),
            saver=saver,
            journal=log,
            is_leader=lambda: True,
            settings=settings,
            database=self.tables.database,
            waiting="",
        )

    @contextlib.asynccontextmanager
    async def running(self):
        work = [
            self.parts.runner.run(),
            agree(self.parts, self.parts.settings),
            settle_ended_trials(self.parts),
        ]
        tasks = [asyncio.create_task(coroutine) for coroutine in work]
        try:
            yield self
            assert not [task.exception() for task in tasks if task.done()]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def read(self):
        """How far it has read REPORTS."""
        return self.parts.runner.positions[subjects.REPORTS]

    def trials(self):
        """The trials that it has rows of."""
        rows = self.tables.ask(Reports(trial_ids=list(range(1, 10))))["rows"]
        return sorted({row["trial_id"] for row in rows})

    async def is_saved(self, log):
        end = len(log.streams[subjects.REPORTS])
        await until(lambda: self.parts.saver.saved_positions.get(subjects.REPORTS, 0) == end)


def test_one_process_becomes_two_and_each_trial_is_read_by_one(tmp_path):
    asyncio.run(_one_becomes_two(MemoryLog(), tmp_path))


async def _one_becomes_two(log, folder):
    await put(log, created(1), created(2), *(reports(validation([1], loss=[0.5]), trial=id) for id in (1, 2)))
    async with Process(log, folder, 1, 1).running() as alone:
        await until(lambda: len(stated(log, metrics.Validated)) == 2)
        await alone.is_saved(log)
    assert not stated(log, metrics.ShardsSet)

    async with Process(log, folder, 1, 2).running() as first:
        await until(lambda: stated(log, metrics.ShardJoined))
        ((_, event),) = stated(log, metrics.ShardsSet)
        assert (event.shards, event.first_trial, event.first_experiment) == (2, 3, 2)
        await put(
            log,
            *(created(id, 2) for id in (3, 4, 5)),
            TrialEnded(trial_id=4, state="COMPLETED", restarts=0, reason="x"),
        )
        for number in (1, 2):
            for id in (1, 2, 3, 4, 5):
                batch = reports(validation([10 * number], loss=[0.1]), trial=id, number=1 + number)
                await put(log, batch)
        await until(lambda: first.parts.waiting.endswith("missing: metrics-2"))
        assert first.read == 2
        assert not first.parts.runner.ready.is_set()
        async with Process(log, folder, 2, 2).running() as second:
            await until(lambda: len(stated(log, metrics.Validated)) == 12)
            for process in (first, second):
                await process.is_saved(log)
                assert process.parts.waiting == ""
            assert (first.trials(), second.trials()) == ([1, 2, 4], [3, 5])
            await until(lambda: stated(log, metrics.Settled))
    actors = {(event.trial_id, event.number): actor for actor, event in stated(log, metrics.Validated)}
    assert len(actors) == len(stated(log, metrics.Validated)) == 12
    assert {trial for (trial, _), actor in actors.items() if actor == "metrics-2"} == {3, 5}
    assert len(stated(log, metrics.Settled)) == 1


def test_a_process_of_the_old_number_cannot_decide_any_more(tmp_path):
    asyncio.run(_old_and_new(MemoryLog(), tmp_path))


async def _old_and_new(log, folder):
    """Its fence is gone once its shard has joined, even if it has read nothing of that."""
    async with Process(log, folder, 1, 1).running() as old:
        await until(old.parts.runner.ready.is_set)
        fence = old.parts.runner.decider.fence_position
    async with Process(log, folder, 1, 2).running(), Process(log, folder, 2, 2).running():
        await until(lambda: len(stated(log, metrics.ShardJoined)) == 2)
    last = await log.last(subjects.decision("metrics"))
    assert last.position > fence
    owners = {event.owner for _, event in stated(log, Decision)}
    assert owners == {"metrics", "metrics-2"}


def test_a_process_with_a_smaller_number_ends(tmp_path):
    async def run(log):
        async with Process(log, tmp_path, 1, 2).running(), Process(log, tmp_path, 2, 2).running() as second:
            await until(second.parts.runner.ready.is_set)
        wrong = Process(log, tmp_path / "w", 1, 1)
        runs = asyncio.create_task(wrong.parts.runner.run())
        with pytest.raises(BadSettings, match="2 metrics processes share the trials"):
            async with asyncio.timeout(60):
                await agree(wrong.parts, wrong.parts.settings)
        runs.cancel()
        await asyncio.gather(runs, return_exceptions=True)

    (tmp_path / "w").mkdir()
    asyncio.run(run(MemoryLog()))


def test_a_running_process_ends_when_there_are_more(tmp_path):
    async def run(log):
        alone = Process(log, tmp_path, 1, 1)
        runs = asyncio.create_task(alone.parts.runner.run())
        agrees = asyncio.create_task(agree(alone.parts, alone.parts.settings))
        await until(alone.parts.runner.ready.is_set)
        await asyncio.sleep(0.3)
        assert not agrees.done()
        await put(log, metrics.ShardsSet(shards=2, first_trial=1, first_experiment=1, reason="set"))
        with pytest.raises(BadSettings):
            async with asyncio.timeout(60):
                await agrees
        runs.cancel()
        await asyncio.gather(runs, return_exceptions=True)

    asyncio.run(run(MemoryLog()))


def test_who_loads_a_state_with_more_shards_than_its_settings_says_so(tmp_path):
    """Where another replica has saved further, nothing that is folded here tells of it."""

    async def work():
        process = Process(MemoryLog(), tmp_path, 1, 1)
        process.parts.runner.ready.set()
        agreeing = asyncio.create_task(agree(process.parts, process.parts.settings))
        process.parts.waiting = "for its first look"
        await until(lambda: not process.parts.waiting)
        fact = metrics.ShardsSet(shards=2, first_trial=1, first_experiment=1, reason="asked")
        list(evolve(process.parts.runner.state, Recorded(1, fact, "", "", 0.0, "")))
        ((_, on_reload),) = process.parts.saver._listeners
        on_reload()
        with pytest.raises(BadSettings, match="2 metrics processes share the trials"):
            await asyncio.wait_for(agreeing, 60)

    asyncio.run(work())
