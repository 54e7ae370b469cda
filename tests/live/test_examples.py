"""The examples of the Core API do what their README says; the others are in tests/full."""

import shutil
from pathlib import Path

import pytest

from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(900)
EXAMPLES = Path(__file__).parents[2] / "examples"


def copied(name, tmp_path):
    return shutil.copytree(EXAMPLES / name, tmp_path / name)


def weight(trial):
    return trial["bestValidation"]["metrics"]["avgMetrics"]["weight"]


@pytest.mark.full
def test_core_api_stages(cluster, tmp_path):
    folder = copied("core_api", tmp_path)
    script = folder / "2_checkpoints.py"
    names = ("0_plain", "1_metrics", "2_checkpoints", "3_search")
    ids = [cluster.create(f"{name}.yaml", folder) for name in names]
    wait_for(lambda: cluster.get(f"experiments/{ids[2]}/checkpoints")["checkpoints"], 60, "a checkpoint")
    cluster.tell(ids[2], "pause")
    wait_for(lambda: cluster.trials(ids[2])[0]["state"] == "STATE_PAUSED", 60, "the pause")
    cluster.tell(ids[2], "activate")
    for id in ids:
        assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    first, _, saving, _ = (cluster.trials(id)[0]["id"] for id in ids)
    assert cluster.logs(first)[-1] == "step 50: weight 50"
    assert weight(cluster.trials(ids[1])[0]) == 50
    assert weight(cluster.trials(ids[2])[0]) == 50
    assert len(cluster.trials(ids[3])) == 8
    script.write_text(script.read_text().replace("time.sleep(0.2)", "time.sleep(0.02)"))
    again = cluster.create("2_checkpoints.yaml", folder, "--config", f"searcher.source_trial_id={saving}")
    assert cluster.wait_for_end(again)["state"] == "STATE_COMPLETED"
    assert weight(cluster.trials(again)[0]) == 100
