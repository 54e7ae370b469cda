"""Three brokers and two of all else: whichever is killed or cut off, all goes on, and nothing is double."""

import asyncio
import time
from collections import Counter

import pytest

from det_contracts import codec, subjects
from services.kit.log_jetstream import JetStreamLog
from services.local.supervisor import SERVICES
from tests.fixtures.local_cluster import wait_for
from tests.fixtures.replicated import WORKERS, Replicated
from tests.fixtures.s3_server import s3_server
from tests.full.test_chaos import no_double_decision

pytestmark = pytest.mark.timeout(3600)
MODEL = "asked-for"
STEPS = 40
SCRIPT = f"""
import time
import determined as det

info = det.get_cluster_info()
run = info.trial._trial_run_id
with det.core.init() as core:
    for op in core.searcher.operations():
        for step in range(1, {STEPS} + 1):
            time.sleep(0.2)
            print(f"run {{run}} step {{step}}", flush=True)
            core.train.report_training_metrics(steps_completed=step, metrics={{"x": step}})
        core.train.report_validation_metrics(steps_completed={STEPS}, metrics={{"x": {STEPS}}})
        op.report_completed({STEPS})
"""
CONFIG = """
name: three-brokers
entrypoint: python3 train.py
searcher: {name: random, metric: x, max_length: 1, max_trials: 4}
max_restarts: 0
"""


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "config.yaml").write_text(CONFIG)
    return folder


@pytest.fixture
def cluster(tmp_path, postgres_url):
    (tmp_path / "s3").mkdir()
    folder = tmp_path / "cluster"
    folder.mkdir()
    with s3_server(tmp_path / "s3") as s3_url:
        replicated = Replicated(folder, postgres_url, s3_url)
        try:
            replicated.up().api("POST", "models", json={"name": MODEL})
            yield replicated
        except BaseException:
            tails = {path.stem: path.read_text(errors="replace")[-3000:] for path in folder.glob("*.log")}
            print("\n".join(f"--- {name}\n{tail}" for name, tail in tails.items()))
            raise
        finally:
            replicated.down()


def started(cluster, model):
    """An experiment of which every trial reports."""
    id = cluster.create("config.yaml", model)
    wait_for(lambda: len(cluster.trials(id)) == 4, 60, "all trials")
    first = [trial["id"] for trial in cluster.trials(id)]
    wait_for(lambda: all(cluster.logs(trial) for trial in first), 120, "all trials to print")
    return id


def back(cluster, description):
    """Wait until each part decides again, and what is asked for is stored; says how long that took."""
    began = time.monotonic()
    wait_for(cluster.all_lead, 120, "every service to be led")
    cluster.api("PATCH", f"models/{MODEL}", json={"description": description})
    assert cluster.get(f"models/{MODEL}")["model"]["description"] == description
    print(f"{description}: control plane back after {time.monotonic() - began:.1f} s")


def whole(cluster):
    """Every replica of every stream has all of it."""

    async def look():
        client = await cluster.brokers.connect()
        try:
            streams = await client.jetstream().streams_info()
            return all(
                len(stream.cluster.replicas) == 2
                and all(replica.current for replica in stream.cluster.replicas)
                for stream in streams
            )
        finally:
            await client.close()

    return asyncio.run(look())


def exactly_once(cluster, id, runs):
    """Each trial completed, and its last run is told whole and once; none ran more often than it may."""
    assert cluster.wait_for_end(id, 300)["state"] == "STATE_COMPLETED"
    for trial in cluster.trials(id):
        assert trial["state"] == "STATE_COMPLETED"
        rows = [
            row
            for page in cluster.stream("trials/metrics/training_metrics", trialIds=trial["id"])
            for row in page["metrics"]
        ]
        last = max(row["trialRunId"] for row in rows)
        assert last <= runs
        steps = [row["totalBatches"] for row in rows if not row["archived"]]
        assert steps == list(range(1, STEPS + 1))
        assert trial["bestValidation"]["metrics"]["avgMetrics"] == {"x": STEPS}
        lines = Counter(line for line in cluster.logs(trial["id"]) if line.startswith(f"run {last} step"))
        assert lines == {f"run {last} step {step}": 1 for step in range(1, STEPS + 1)}


def read_control(cluster):
    async def work():
        client = await cluster.brokers.connect()
        events = []
        try:
            async with JetStreamLog(client).read(subjects.CONTROL, after=0) as feed:
                while True:
                    batch = await feed.batch()
                    events += [codec.decode(m.body, m.position).event for m in batch.messages]
                    if batch.caught_up:
                        return events
        finally:
            await client.close()

    return asyncio.run(work())


def test_each_broker_and_each_leader_is_killed_twice(cluster, model):
    for turn in ("first", "second"):
        for name in cluster.brokers.names:
            id = started(cluster, model)
            cluster.brokers.kill9(name)
            back(cluster, f"{turn} kill of broker {name}")
            cluster.brokers.start([name])
            exactly_once(cluster, id, runs=1)
            wait_for(lambda: whole(cluster), 120, "all replicas to be current")
        id = started(cluster, model)
        for owner in SERVICES:
            wait_for(lambda owner=owner: cluster.leaders(owner), 60, f"{owner} to be led")
            (leader,) = cluster.leaders(owner)
            cluster.kill(leader)
            back(cluster, f"{turn} kill of {leader}, which led")
        exactly_once(cluster, id, runs=1)
    assert no_double_decision(read_control(cluster))


@pytest.mark.parametrize(("seconds", "runs"), [(10, 1), (60, 2)])
def test_a_worker_is_cut_off_twice(cluster, model, seconds, runs):
    for worker in WORKERS:
        id = started(cluster, model)
        with cluster.cut_off(worker, seconds):
            back(cluster, f"{worker} is cut off")
        exactly_once(cluster, id, runs)
        wait_for(lambda: len(cluster.get("agents")["agents"]) == len(WORKERS), 60, "the worker to be back")
    assert no_double_decision(read_control(cluster))
