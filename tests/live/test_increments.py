"""The listings of the Core API guide run as they are printed."""

import re
import shutil
from pathlib import Path

import pytest

from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(600)
LISTINGS = Path(__file__).parents[1] / "dropin" / "listings"


@pytest.fixture
def guide(tmp_path):
    """The listings in a folder of the reader's own."""
    return shutil.copytree(LISTINGS, tmp_path / "core_api")


def metrics(cluster, trial_id, kind):
    rows = cluster.stream(f"trials/metrics/{kind}_metrics", trialIds=trial_id)
    reports = [m for row in rows for m in row["metrics"]]
    return [(m["totalBatches"], m["metrics"]["avgMetrics"]["x"]) for m in reports]


@pytest.mark.full
def test_stages_0_to_2_with_a_pause_and_a_continuation(cluster, guide):
    start = cluster.create("0_start.yaml", guide)
    report = cluster.create("1_metrics.yaml", guide)
    save = cluster.create("2_checkpoints.yaml", guide)
    checkpoints = f"experiments/{save}/checkpoints"
    wait_for(lambda: cluster.get(checkpoints)["checkpoints"], 60, "a checkpoint of stage 2")
    cluster.tell(save, "pause")
    wait_for(
        lambda: not cluster.get("tasks")["allocationIdToSummary"] or _left(cluster, save),
        60,
        "stage 2 to leave",
    )
    saved = max(c["metadata"]["steps_completed"] for c in cluster.get(checkpoints)["checkpoints"])
    assert saved < 100
    cluster.tell(save, "activate")
    for id in (start, report, save):
        assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"

    begun, reporting, saving = (cluster.trials(id)[0]["id"] for id in (start, report, save))
    assert cluster.logs(begun)[-1] == "x is now 100"
    assert metrics(cluster, reporting, "training") == [(n, n) for n in range(10, 101, 10)]
    assert metrics(cluster, reporting, "validation") == [(100, 100)]
    assert metrics(cluster, saving, "training") == [(n, n) for n in range(10, 101, 10)]
    lines = [line for line in cluster.logs(saving) if line.startswith("root: x is now") or "x is now" in line]
    resumed = [int(line.rpartition(" ")[2]) for line in lines]
    assert resumed == list(range(1, 101))

    continued = cluster.create("2_checkpoints.yaml", guide, "--config", f"searcher.source_trial_id={saving}")
    (trial,) = _wait_for_trials(cluster, continued)
    wait_for(lambda: metrics(cluster, trial["id"], "training"), 60, "a report of the continuation")
    assert metrics(cluster, trial["id"], "training")[0] == (10, 110)
    cluster.tell(continued, "kill")
    assert cluster.wait_for_end(continued)["state"] == "STATE_CANCELED"


def _left(cluster, id):
    tasks = cluster.get("tasks")["allocationIdToSummary"]
    return not any(allocation.startswith(f"{id}.") for allocation in tasks)


def _wait_for_trials(cluster, id):
    wait_for(lambda: cluster.trials(id), 60, "a trial")
    return cluster.trials(id)


@pytest.mark.full
def test_stage_3_follows_a_search_to_its_end(cluster, guide):
    done = cluster.det("e", "create", "3_hpsearch.yaml", ".", "-f", cwd=guide)
    assert done.returncode == 0
    id = int(re.search(r"Created experiment (\d+)\n", done.stdout)[1])
    assert cluster.det("e", "wait", id, "--polling-interval", "0.2").returncode == 0
    trials = cluster.trials(id)
    assert len(trials) == 8
    for trial in trials:
        by = trial["hparams"]["increment_by"]
        steps = trial["totalBatchesProcessed"]
        assert trial["bestValidation"]["metrics"]["avgMetrics"] == {"x": by * steps}
    assert max(t["totalBatchesProcessed"] for t in trials) == 40
