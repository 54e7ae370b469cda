"""A search that the user's own code decides, with the searcher and the code itself killed on the way."""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fixtures.local_cluster import processes_below, wait_for

pytestmark = pytest.mark.timeout(900)

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_search"


@pytest.fixture
def search(cluster, tmp_path):
    """Starts the example's search method as a process of its own; it ends with the test."""
    folder = tmp_path / "custom_search"
    shutil.copytree(EXAMPLE, folder)
    started = []

    def start():
        environment = os.environ | {
            "DET_MASTER": cluster.address,
            "DET_DEBUG_CONFIG_PATH": str(tmp_path / "configuration"),
        }
        process = subprocess.Popen(
            [sys.executable, "search.py"],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.full
def test_it_comes_to_its_end_whatever_is_killed(cluster, search):
    before = cluster.newest_experiment()
    first = search()
    id = cluster.experiment_after(before)
    wait_for(lambda: cluster.get(f"experiments/{id}/checkpoints")["checkpoints"], 60, "the first checkpoint")
    cluster.kill("searcher")
    first.send_signal(signal.SIGKILL)
    first.communicate()
    second = search()
    output, _ = second.communicate(timeout=240)
    assert second.returncode == 0, output
    assert f"experiment {id} is over" in output
    experiment = cluster.experiment(id)
    assert (experiment["state"], experiment["numTrials"]) == ("STATE_COMPLETED", 8)
    trials = cluster.trials(id)
    assert {trial["state"] for trial in trials} == {"STATE_COMPLETED"}
    assert Counter(t["totalBatchesProcessed"] for t in trials) == {4: 4, 8: 2, 16: 1, 32: 1}
    assert cluster.newest_experiment() == id


def test_while_it_is_paused_nothing_is_decided(cluster, search):
    before = cluster.newest_experiment()
    process = search()
    id = cluster.experiment_after(before)
    cluster.api("POST", f"experiments/{id}/pause")
    (event,) = cluster.get(f"experiments/{id}/searcher_events")["searcherEvents"]
    assert event == {"id": -1, "experimentInactive": {"experimentState": "STATE_PAUSED"}}
    cluster.api("POST", f"experiments/{id}/kill")
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output


@pytest.mark.full
def test_a_task_of_the_cluster_decides_and_survives_its_end(cluster, tmp_path):
    folder = tmp_path / "remote"
    shutil.copytree(EXAMPLE, folder)
    text = (folder / "search.py").read_text()
    (folder / "search.py").write_text(
        text.replace("TRIALS, FIRST_LENGTH = 8, 4", "TRIALS, FIRST_LENGTH = 4, 2")
    )
    method = cluster.create("remote.yaml", folder)
    search = cluster.experiment_after(method)
    wait_for(lambda: cluster.trials(search), 60, "its trials")
    (deciding,) = cluster.trials(method)
    kill_script(cluster, "remote.py")
    assert cluster.wait_for_end(search, 200)["state"] == "STATE_COMPLETED"
    assert cluster.wait_for_end(method)["state"] == "STATE_COMPLETED"
    assert Counter(t["totalBatchesProcessed"] for t in cluster.trials(search)) == {2: 2, 4: 1, 8: 1}
    assert cluster.get(f"trials/{deciding['id']}")["trial"]["restarts"] == 1
    assert cluster.newest_experiment() == search
    assert cluster.experiment(search)["username"] == "determined"
    assert any(f"experiment {search} is over" in line for line in cluster.logs(deciding["id"]))


def kill_script(cluster, name):
    """kill -9 the interpreter that runs a script of this name for this cluster."""

    def running_pids():
        runs = processes_below(cluster.home.path / "workers")
        return [pid for pid in runs if script_of(pid) == name]

    pids = []
    wait_for(lambda: pids.extend(running_pids()) or pids, 60, f"{name} to run")
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def script_of(pid):
    """What the interpreter of that number was told to run; empty once it is gone."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return ""
    return words[1] if len(words) > 1 else ""
