"""The metrics service is killed again and again while real scripts report: every point is there, once."""

import asyncio
import threading

import nats
import pytest

from det_contracts.queries import Buckets, Reports, TrialSummaries
from determined import ClusterInfo, TrialInfo
from determined.core._distributed import DummyDistributedContext
from determined.core._train import TrainContext
from determined.transport.bus import BusTransport
from determined.transport.bus_thread import BusThread
from services.kit.bus import BusClient
from services.kit.log_jetstream import ensure_streams
from tests.fixtures.metrics_service import answer_to
from tests.fixtures.metrics_service import credentials as credentials
from tests.fixtures.metrics_service import metrics as metrics

REPORTS = 20_000
TRIALS = (1, 2)
KILLS = 6


def report(url, credentials, trial, done):
    """What a training does, until the broker has it all."""
    config = {"searcher": {"metric": "loss", "smaller_is_better": True}}
    own = TrialInfo(trial, 1, 1, {}, config, 0, 1, False)
    info = ClusterInfo("http://x", "c", "a", [0], f"1.{trial}", f"1.{trial}.1", "s", "TRIAL", trial_info=own)
    transport = BusTransport(info, BusThread([url], str(credentials), "_INBOX"))
    transport.start()
    train = TrainContext(transport, DummyDistributedContext(), trial_id=trial, exp_id=1, run_id=1)
    for step in range(1, REPORTS + 1):
        train.report_training_metrics(step, {"loss": 1.0 / step, "step": step})
        if step % (REPORTS // 10) == 0:
            train.report_validation_metrics(step, {"loss": 1.0 / step})
    transport.close()
    done.set()


async def stored(bus_client, trial):
    """How many training reports can be read."""
    summaries = await answer_to(bus_client, TrialSummaries([trial]))
    return (
        summaries.get(str(trial), {}).get("summary", {}).get("training", {}).get("loss", {}).get("count", 0)
    )


async def every_report(bus_client, trial, group):
    """All rows of a group, page by page."""
    rows, after, more = [], None, True
    while more:
        page = await answer_to(bus_client, Reports(trial_ids=[trial], group=group, after=after, limit=5000))
        rows += page["rows"]
        last = page["rows"][-1]
        after = (last["trial_id"], last["run"], last["steps_completed"], last["id"])
        more = page["more"]
    return rows


@pytest.mark.full
@pytest.mark.timeout(900)
def test_no_point_is_missing_or_doubled(metrics, broker, credentials):
    asyncio.run(_with_kills(metrics, broker.url, credentials))


async def _with_kills(metrics, url, credentials):
    client = await nats.connect(url, user_credentials=str(credentials))
    await ensure_streams(client.jetstream())
    bus_client = BusClient(client)
    ends = [threading.Event() for _ in TRIALS]
    for trial, end in zip(TRIALS, ends, strict=True):
        threading.Thread(target=report, args=(url, credentials, trial, end), daemon=True).start()
    for _ in range(KILLS):
        before = await stored(bus_client, TRIALS[0])
        # Killed as soon as it has stored more, or has stored all there is.
        while (now := await stored(bus_client, TRIALS[0])) == before and now < REPORTS:
            pass
        metrics.kill()
        metrics.start()
    for trial, end in zip(TRIALS, ends, strict=True):
        assert await asyncio.to_thread(end.wait, 120)
        while await stored(bus_client, trial) < REPORTS:
            pass
        rows = await every_report(bus_client, trial, "training")
        assert [row["steps_completed"] for row in rows] == list(range(1, REPORTS + 1))
        assert all(row["metrics"]["step"] == row["steps_completed"] for row in rows)
        validations = await every_report(bus_client, trial, "validation")
        assert [row["steps_completed"] for row in validations] == list(range(2000, REPORTS + 1, 2000))
        (curve,) = await answer_to(
            bus_client, Buckets(trial_ids=[trial], names=["loss"], group="training", width=50)
        )
        assert (curve["count"], sum(curve["counts"])) == (REPORTS, REPORTS)
        summary = (await answer_to(bus_client, TrialSummaries([trial])))[str(trial)]["summary"]["training"]
        assert summary["step"]["sum"] == REPORTS * (REPORTS + 1) / 2
    await client.close()
