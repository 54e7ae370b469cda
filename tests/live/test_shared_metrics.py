"""Two metrics processes share the trials, and either is killed while scripts report and print.

Every point and every line is there, once, and the two answer as one. Before that, one process had everything
to itself: what is from then stays, and is answered together with what came later.
"""

import asyncio
import random
import threading

import nats
import pytest

from det_contracts import codec, queries, subjects
from det_contracts.events.metrics import ReportRefused, Validated
from det_contracts.events.searcher import TrialCreated
from services.kit.bus import BusClient
from services.kit.log import Draft
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.records import read_event
from tests.fixtures.metrics_service import Metrics, answer_to
from tests.fixtures.metrics_service import credentials as credentials
from tests.live import test_ingest, test_log_ingest

pytestmark = pytest.mark.timeout(900)
REPORTS = 6_000
LINES = 15_000
EARLY, LATER = (1, 2), (3, 4, 5, 6)
EARLY_TASKS, LATER_TASKS = ("1.a", "1.b"), ("2.a", "2.b", "2.c", "2.d")
KILLS = 8


@pytest.fixture
def processes(broker, credentials, tmp_path, request):
    """Starts a process of a shard."""
    started = []

    def start(shard, shards):
        database = f"sqlite:///{tmp_path}/metrics-{shard}.db"
        logs = tmp_path / f"logs-{len(started)}"
        started.append(Metrics(broker.url, credentials, database, logs, shard, shards))
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest.mark.expected_log(
    "settings.refused error=STEADFAST_METRICS_SHARDS is 1, but 2", "a process with the old number is started"
)
def test_either_of_two_may_be_killed(processes, broker, credentials, tmp_path, monkeypatch):
    monkeypatch.setattr(test_ingest, "REPORTS", REPORTS)
    monkeypatch.setattr(test_log_ingest, "LINES", LINES)
    asyncio.run(Story(processes, broker.url, credentials, tmp_path).run())


class Story:
    """One cluster's metrics, from one process to two."""

    def __init__(self, processes, url, credentials, folder):
        self.processes, self.url, self.credentials, self.folder = processes, url, credentials, folder

    async def run(self):
        self.client = await nats.connect(self.url, user_credentials=str(self.credentials))
        await ensure_streams(self.client.jetstream())
        self.bus_client = BusClient(self.client)
        self.journal = test_log_ingest.Intake(self.client)
        await self.create(EARLY, 1)
        alone = self.processes(1, 1)
        await self.tell(EARLY, EARLY_TASKS)
        await self.all_is_there(EARLY, EARLY_TASKS)
        alone.kill()

        self.two = [self.processes(shard, 2) for shard in (1, 2)]
        await self.is_shared()
        await self.create(LATER, 2)
        telling = asyncio.create_task(self.tell(LATER, LATER_TASKS))
        await self.kill_either(telling)
        await telling
        await self.all_is_there((*EARLY, *LATER), (*EARLY_TASKS, *LATER_TASKS))
        await self.answers_are_joined()
        await self.verdicts_are_recorded_once()
        self.a_wrong_number_is_refused()
        await self.client.close()

    async def create(self, trials, experiment):
        """As the searcher does."""
        log = JetStreamLog(self.client)
        for trial in trials:
            event = TrialCreated(
                trial_id=trial,
                experiment_id=experiment,
                request_id=f"r{trial}",
                task_id=f"{experiment}.{trial}",
                seed=1,
                hparams={},
                reason="asked",
            )
            body = codec.encode(event, id=f"trial-{trial}", actor="searcher", at=1.0)
            await log.append(Draft(codec.subject_of(event), body, f"trial-{trial}"))

    async def is_shared(self):
        log = JetStreamLog(self.client)
        for shard in (1, 2):
            async with asyncio.timeout(60):
                while await log.last(f"control.metrics.shard.{shard}.joined") is None:
                    await asyncio.sleep(0.1)

    async def tell(self, trials, tasks):
        """All that scripts of these trials report, and these tasks print, stored by the broker."""
        done = [threading.Event() for _ in trials]
        for trial, event in zip(trials, done, strict=True):
            arguments = (self.url, self.credentials, trial, event)
            threading.Thread(target=test_ingest.report, args=arguments, daemon=True).start()
        shipping = []
        for task in tasks:
            written, folder = threading.Event(), self.folder / task
            threading.Thread(target=test_log_ingest.write, args=(folder, written), daemon=True).start()
            shipping.append(test_log_ingest.ship(self.journal, task, folder, written))
        await asyncio.gather(*shipping, *(asyncio.to_thread(event.wait, 300) for event in done))

    async def kill_either(self, telling):
        chance = random.Random(7)
        for number in range(KILLS):
            await asyncio.sleep(chance.uniform(0.1, 1.5))
            victim = chance.choice(self.two)
            victim.kill()
            if number % 2:
                # The other one goes on meanwhile.
                await asyncio.sleep(chance.uniform(0.1, 1.0))
            victim.start()

    async def all_is_there(self, trials, tasks):
        for trial in trials:
            while await test_ingest.stored(self.bus_client, trial) < REPORTS:
                await asyncio.sleep(0.1)
            rows = await test_ingest.every_report(self.bus_client, trial, "training")
            assert [row["steps_completed"] for row in rows] == list(range(1, REPORTS + 1))
            assert all(row["metrics"]["step"] == row["steps_completed"] for row in rows)
            rows = await test_ingest.every_report(self.bus_client, trial, "validation")
            assert [row["steps_completed"] for row in rows] == list(
                range(REPORTS // 10, REPORTS + 1, REPORTS // 10)
            )
        for task in tasks:
            while await test_log_ingest.stored(self.bus_client, task) < LINES:
                await asyncio.sleep(0.1)
            query = queries.LogPage(task_id=task, limit=0)
            lines = await test_log_ingest.every_line(self.bus_client, query)
            assert [line["text"] for line in lines] == [f"line {n}" for n in range(LINES)]
            assert [line["number"] for line in lines] == list(range(1, LINES + 1))

    async def answers_are_joined(self):
        trials = [*EARLY, *LATER]
        summaries = await answer_to(self.bus_client, queries.TrialSummaries(trials))
        assert {id: summary["summary"]["training"]["step"]["sum"] for id, summary in summaries.items()} == {
            str(id): REPORTS * (REPORTS + 1) / 2 for id in trials
        }
        curves = await answer_to(self.bus_client, queries.Buckets(trial_ids=trials, names=["step"], width=50))
        assert [(curve["trial_id"], curve["count"]) for curve in curves] == [(id, REPORTS) for id in trials]
        reports, after = [], None
        while True:
            query = queries.Reports(trial_ids=trials, group="training", after=after, limit=0)
            page = await answer_to(self.bus_client, query)
            reports += [(row["trial_id"], row["steps_completed"]) for row in page["rows"]]
            if not page["more"]:
                break
            last = page["rows"][-1]
            after = (last["trial_id"], last["run"], last["steps_completed"], last["id"])
        assert reports == [(id, step) for id in trials for step in range(1, REPORTS + 1)]
        names = await answer_to(self.bus_client, queries.MetricNames([1, 2]))
        assert names == {"training": ["loss", "step"], "validation": ["loss"]}
        best = await answer_to(self.bus_client, queries.BestValidation(1, smaller_is_better=True))
        assert best == 1.0 / REPORTS

    async def verdicts_are_recorded_once(self):
        """Each validation of each trial, by whichever process."""
        validations, actors = [], set()
        log = JetStreamLog(self.client)
        async with log.read(subjects.CONTROL, after=0) as feed:
            while True:
                batch = await feed.batch()
                for message in batch.messages:
                    recorded = read_event(message)
                    assert not isinstance(recorded.event, ReportRefused)
                    if isinstance(recorded.event, Validated):
                        validations.append((recorded.event.trial_id, recorded.event.number))
                        actors.add(recorded.actor)
                if batch.caught_up:
                    break
        assert sorted(validations) == [(id, number) for id in (*EARLY, *LATER) for number in range(1, 11)]
        assert actors == {"metrics", "metrics-2"}

    def a_wrong_number_is_refused(self):
        self.two[0].kill()
        wrong = self.processes(1, 1)
        assert wrong.process.wait(timeout=60) == 2
        assert "Set it to 2 for all of them" in wrong.output()
