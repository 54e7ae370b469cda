"""The service as it runs: over a log in memory, with its tables."""

import asyncio
import contextlib
import time
from types import SimpleNamespace

import msgspec

from det_contracts import codec, subjects
from det_contracts.events import Decision, metrics, searcher
from det_contracts.queries import BestValidation, LogPage, Reports, TrialSummaries
from det_contracts.reports import ReportBatch
from services.kit.log import Draft
from services.kit.log_memory import MemoryLog
from services.kit.runner import Runner
from services.kit.snapshot_store import DatabaseSaver
from services.metrics import trimming
from services.metrics.app import RULES
from services.metrics.domain import State
from services.metrics.settings import MetricsSettings
from services.metrics.settling import settle_ended_trials
from services.metrics.store import project
from services.metrics.trimming import drop_points, trim_logs
from tests.fixtures.waiting import until
from tests.metrics.world import lines, reports, training, validation


class Late(MemoryLog):
    """REPORTS arrives only while `flows` is set."""

    def __init__(self):
        super().__init__()
        self.flows = asyncio.Event()
        self.flows.set()

    @contextlib.asynccontextmanager
    async def read(self, stream, *, after, subjects=()):
        async with super().read(stream, after=after, subjects=subjects) as feed:
            yield Held(feed, self.flows) if stream == "REPORTS" else feed

    async def put(self, what, id=None):
        if isinstance(what, ReportBatch):
            subject, body = subjects.reports(what.trial_id), msgspec.json.encode(what)
        else:
            subject, body = codec.subject_of(what), codec.encode(what, id=id or repr(what), actor="t", at=0.0)
        return await self.append(Draft(subject, body, id or repr(what)))

    def control(self):
        """What the service has stated, in order."""
        own = [m for m in self.streams[subjects.CONTROL] if m.subject.startswith("control.metrics.")]
        events = [codec.decode(m.body, m.position).event for m in own]
        return [e for e in events if type(e) is not Decision]


class Held:
    def __init__(self, feed, flows):
        self._feed, self._flows = feed, flows

    async def batch(self):
        batch = await self._feed.batch()
        await self._flows.wait()
        return batch


@contextlib.asynccontextmanager
async def running(log, tables, **settings):
    saver = DatabaseSaver(tables.database, "metrics", State, projection=project)
    runner = Runner(RULES, log, saver)
    parts = SimpleNamespace(
        runner=runner,
        journal=log,
        is_leader=lambda: True,
        settings=MetricsSettings(**settings),
        database=tables.database,
    )
    tasks = [asyncio.create_task(runner.run()), asyncio.create_task(settle_ended_trials(parts))]
    tasks += [asyncio.create_task(trim_logs(parts)), asyncio.create_task(drop_points(parts))]
    try:
        await asyncio.wait_for(runner.ready.wait(), 60)
        yield runner, saver
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


class Emptied(Late):
    """All that REPORTS held has grown too old."""

    async def bounds(self, stream):
        return (8, 7) if stream == subjects.REPORTS else await super().bounds(stream)


def test_reports_that_are_kept_no_longer_hold_up_no_settling(tables):
    async def work():
        log = Emptied()
        await log.put(searcher.TrialEnded(trial_id=1, state="COMPLETED", restarts=0, reason="done"))
        async with running(log, tables):
            await until(log.control)

    asyncio.run(work())


def test_a_trial_is_settled_only_after_all_its_reports(tables):
    async def work():
        log = Late()
        async with running(log, tables) as (runner, _):
            log.flows.clear()
            await log.put(reports(validation([5], loss=[0.5])))
            last = await log.put(
                searcher.TrialEnded(trial_id=1, state="COMPLETED", restarts=0, reason="done")
            )
            await runner.wait_for_position(last)
            before = await log.put(metrics.Settled(trial_id=99, reason="a beat of the log"))
            await runner.wait_for_position(before)
            assert not [e for e in log.control() if e.trial_id == 1]
            log.flows.set()
            await until(lambda: len(log.control()) == 3)
        stated = [e for e in log.control() if e.trial_id == 1]
        assert [type(e) for e in stated] == [metrics.Validated, metrics.Settled]

    asyncio.run(work())


def test_what_a_script_can_send_does_not_stop_the_service(tables):
    async def work():
        log = Late()
        forged = searcher.TrialEnded(
            trial_id=2, state="COMPLETED", restarts=0, reason="says another's script"
        )
        other = codec.encode(forged, id="f", actor="x", at=0.0)
        async with running(log, tables) as (_, saver):
            await log.append(Draft("reports.1.metrics", b"nonsense", "a"))
            await log.append(Draft("control.trial.1.progressed", b"nonsense", "b"))
            await log.append(Draft("control.trial.1.ended", other, "c"))
            await log.append(Draft("logs.1.a", b"{}", "d"))
            await log.put(reports(training([1], a=[1]), trial=2), id="e")
            await until(lambda: len(tables.ask(Reports(trial_ids=[2]))["rows"]) == 1)
            await saver.wait_for_position(2)
        assert log.control() == []

    asyncio.run(work())


def test_stopped_and_started_again_it_states_and_stores_nothing_twice(tables):
    async def work():
        log = Late()
        for number in range(1, 6):
            async with running(log, tables) as (_, saver):
                await log.put(reports(validation([number], loss=[0.1 * number]), number=number))
                await until(lambda number=number: len(log.control()) == number)
                if number % 2:
                    await saver.wait_for_position((await log.bounds(subjects.CONTROL))[1])
        async with running(log, tables) as (_, saver):
            await saver.wait_for_position((await log.bounds(subjects.CONTROL))[1])
        assert [e.number for e in log.control()] == [1, 2, 3, 4, 5]
        assert [r["steps_completed"] for r in tables.ask(Reports(trial_ids=[1]))["rows"]] == [1, 2, 3, 4, 5]

    asyncio.run(work())


def test_log_lines_that_are_too_old_are_trimmed_by_a_decision_that_a_rebuild_repeats(tables, monkeypatch):
    monkeypatch.setattr(trimming, "POLL_EVERY_S", 0.05)
    now = time.time()

    async def work():
        log = Late()
        for number, days in enumerate((40, 35, 29, 1)):
            batch = lines(f"{days} days old", offset=number, at=now - days * 86_400)
            await log.append(Draft(subjects.logs("1.a"), msgspec.json.encode(batch), f"log-{number}"))
        page = LogPage(task_id="1.a")
        texts = lambda: [line["text"] for line in tables.ask(page)["lines"]]  # noqa: E731
        async with running(log, tables, log_keep_days=30.0):
            await until(lambda: texts() == ["29 days old", "1 days old"])
            (stated,) = log.control()
            assert (stated.through, stated.reason) == (2, "older than 30 days")
        live = tables.ask(page)
        tables.drop()
        async with running(log, tables) as (_, saver):
            await saver.wait_for_position((await log.bounds(subjects.CONTROL))[1])
            await until(lambda: tables.ask(page)["lines"] == live["lines"])
        assert len(log.control()) == 1

    asyncio.run(work())


def test_curves_of_long_ended_trials_are_deleted_and_stay_deleted_after_a_rebuild(tables, monkeypatch):
    monkeypatch.setattr(trimming, "POLL_EVERY_S", 0.05)
    now = time.time()

    def made(days_ago, trial, *of):
        batch = reports(*of, trial=trial)
        at = [now - days_ago * 86_400] * 3
        return msgspec.structs.replace(
            batch,
            series=[msgspec.structs.replace(series, at=at[: len(series.steps)]) for series in batch.series],
        )

    def points(trial):
        return [row["steps_completed"] for row in tables.ask(Reports(trial_ids=[trial]))["rows"]]

    async def work():
        log = Late()
        for trial, days in ((1, 40), (2, 40), (3, 1)):
            await log.put(
                made(days, trial, training([1, 2, 3], loss=[3.0, 2.0, 1.0]), validation([3], loss=[0.5]))
            )
        for trial in (1, 3):
            ended = searcher.TrialEnded(trial_id=trial, state="COMPLETED", restarts=0, reason="done")
            await log.put(ended)
        dropped = lambda: [e for e in log.control() if isinstance(e, metrics.PointsDropped)]  # noqa: E731
        async with running(log, tables, metric_keep_days=30.0):
            await until(dropped)
            await until(lambda: points(1) == [])
            # Trial 2 has not ended, trial 3 is young.
            assert points(2) == points(3) == [1, 2, 3, 3]
        (stated,) = dropped()
        assert (stated.trial_id, stated.through) == (1, 3)
        questions = [TrialSummaries([1, 2, 3]), BestValidation(1, True), Reports(trial_ids=[1, 2, 3])]
        live = [tables.ask(query) for query in questions]
        assert live[0]["1"]["summary"]["training"]["loss"]["count"] == 3
        assert live[0]["1"]["best_validation"]["steps_completed"] == 3
        tables.drop()
        async with running(log, tables) as (_, saver):
            await saver.wait_for_position((await log.bounds(subjects.CONTROL))[1])
            assert [tables.ask(query) for query in questions] == live

    asyncio.run(work())
