"""Everything that people and their programs do, with two gateways behind a load balancer that takes turns."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.fixtures.gateways import GATEWAYS_VARIABLE
from tests.live.test_two_gateways import CONFIG, SCRIPT

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(1800)
AS_ONE = [
    "tests/live/test_client.py",
    "tests/live/test_webui.py",
    "tests/live/test_webui_charts.py",
    "tests/live/test_webui_trials.py",
    "tests/live/test_webui_lists.py",
    "tests/live/test_webui_stories.py",
    "tests/live/test_webui_logs.py",
    "tests/live/test_webui_tabs.py",
    "tests/live/test_own_tasks.py",
    "tests/full/test_published.py",
]
"""Files whose tests know nothing of gateways."""
KILLS = 8
CALM_S = 1.0


@pytest.mark.parametrize("file", AS_ONE)
def test_all_is_as_with_one_gateway(file, tmp_path):
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", file]
    done = subprocess.run(
        [*command, f"--basetemp={tmp_path / 'inner'}"],
        cwd=ROOT,
        env=os.environ | {GATEWAYS_VARIABLE: "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]


def test_a_search_is_whole_while_gateways_are_killed_all_the_time(gateways, tmp_path):
    cluster = gateways.cluster
    (tmp_path / "train.py").write_text(SCRIPT)
    gate, over = tmp_path / "gate", threading.Event()
    gate.touch()
    more = CONFIG["hyperparameters"] | {"seed": {"type": "categorical", "vals": list(range(8))}}
    environment = {"environment_variables": [f"GATE={gate}"]}
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG | {"hyperparameters": more, "environment": environment}))
    id = cluster.create("config.json", tmp_path)

    def kill() -> None:
        for number in range(KILLS):
            gateways.kill(number % 2)
            if over.wait(CALM_S):
                return

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        received = set()
        while (state := cluster.experiment(id)["state"]) != "STATE_COMPLETED":
            assert state not in ("STATE_ERROR", "STATE_CANCELED")
            ended = {trial["id"] for trial in cluster.trials(id) if trial["state"] == "STATE_COMPLETED"}
            # Nobody is shown an earlier state than they were shown before.
            assert received <= ended
            received = ended
        cluster.wait_for_end(id)
    finally:
        over.set()
        killing.join()
    trials = cluster.trials(id)
    assert len(trials) == 24
    for trial in trials:
        rows = cluster.stream("trials/metrics/training_metrics", trialIds=trial["id"])
        assert [row["totalBatches"] for page in rows for row in page["metrics"]] == [1, 2, 3, 4]
