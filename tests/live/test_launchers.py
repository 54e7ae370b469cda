"""Trials of 4 slots, which span two workers: preempted, resumed, and with one of their processes killed."""

import contextlib
import os
import re
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(900)
EXAMPLES = Path(__file__).parents[2] / "examples"


LONGER = ("--config", "searcher.max_length.batches=80")


def copied(name, tmp_path):
    return shutil.copytree(EXAMPLES / name, tmp_path / name)


def steps(cluster, trial_id, key):
    rows = cluster.stream("trials/metrics/training_metrics", trialIds=trial_id)
    return [m["metrics"]["avgMetrics"][key] for page in rows for m in page["metrics"]]


def ranks(cluster, trial_id, text):
    """Ranks of the lines with a text."""
    page = cluster.stream(f"trials/{trial_id}/logs")
    return Counter(row.get("rankId") for row in page if text in row["log"])


def preempt_and_resume(cluster, id):
    cluster.tell(id, "pause")
    wait_for(lambda: cluster.trials(id)[0]["state"] == "STATE_PAUSED", 60, "the pause")
    cluster.tell(id, "activate")


@pytest.mark.full
def test_a_launcher_of_ones_own(two_workers, tmp_path):
    id = two_workers.create("4_distributed.yaml", copied("core_api", tmp_path), *LONGER)
    trial = two_workers.first_trial(id)
    wait_for(lambda: len(steps(two_workers, trial, "weight")) > 5, 60, "some steps")
    preempt_and_resume(two_workers, id)
    assert two_workers.wait_for_end(id)["state"] == "STATE_COMPLETED"
    # One line per process, all of the same step; then nothing lost and nothing twice.
    left = [row["log"] for row in two_workers.stream(f"trials/{trial}/logs") if "left at step" in row["log"]]
    assert len(left) == 4
    assert len({re.search(r"left at step (\d+)", line)[1] for line in left}) == 1
    assert ranks(two_workers, trial, "left at step") == Counter([0, 1, 2, 3])
    assert steps(two_workers, trial, "weight") == [float(n) for n in range(1, 81)]
    assert two_workers.trials(id)[0]["restarts"] == 0


@pytest.mark.full
def test_torch_over_two_workers(two_workers, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    id = two_workers.create("distributed.yaml", copied("core_api_mnist", tmp_path))
    wait_for(lambda: two_workers.get(f"experiments/{id}/checkpoints")["checkpoints"], 120, "a checkpoint")
    preempt_and_resume(two_workers, id)
    assert two_workers.wait_for_end(id, 200)["state"] == "STATE_COMPLETED"
    epochs = steps(two_workers, two_workers.first_trial(id), "epoch")
    assert [epoch for at, epoch in enumerate(epochs) if epoch not in epochs[:at]] == [1, 2, 3, 4]
    assert len(set(Counter(epochs).values())) == 1
    (trial,) = two_workers.trials(id)
    assert (trial["restarts"], trial["bestValidation"]["metrics"]["avgMetrics"]["epoch"]) == (0, 4)
    # Every process tests, under its own rank.
    assert set(ranks(two_workers, trial["id"], "test: loss")) == {0, 1, 2, 3}


FULL = pytest.mark.full


@pytest.mark.full
@pytest.mark.parametrize(
    "victim", ["worker", pytest.param("wrap_rank", marks=FULL), pytest.param("entrypoint", marks=FULL)]
)
def test_the_end_of_one_process_ends_all_and_counts_once(two_workers, tmp_path, victim):
    id = two_workers.create("4_distributed.yaml", copied("core_api", tmp_path), *LONGER)
    number = two_workers.first_trial(id)
    wait_for(lambda: len(steps(two_workers, number, "weight")) > 3, 60, "some steps")
    os.kill(find(two_workers, victim), signal.SIGKILL)
    assert two_workers.wait_for_end(id)["state"] == "STATE_COMPLETED"
    (trial,) = two_workers.trials(id)
    assert trial["restarts"] == 1
    assert steps(two_workers, number, "weight")[-80:] == [float(n) for n in range(1, 81)]
    wait_for(lambda: not two_workers.run_processes(), 60, "the processes to be gone")


def find(cluster, victim):
    """A process of the second worker's."""
    words = {
        "worker": lambda argv: argv[1:3] == ["4_distributed.py", "worker"] or "worker" in argv[2:3],
        "wrap_rank": lambda argv: "determined.launch.wrap_rank" in argv,
        # Behind a shell after a cold start, without one after a warm start.
        "entrypoint": lambda argv: "4_distributed.py launcher" in " ".join(argv[-2:]),
    }
    name = cluster.workers()[1]
    for pid in cluster.run_processes(name):
        with contextlib.suppress(OSError):
            if words[victim](Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]):
                return pid
    raise AssertionError(f"no {victim} at {name}")
