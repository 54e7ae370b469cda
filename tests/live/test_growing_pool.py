"""A pool without any worker that has them started on this host, for a search, and gives them back."""

import pytest

from services.kit import process_records
from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(600)

POOLS = """
resource_pools:
  - pool_name: default
    provider:
      type: process
      slots_per_instance: 1
      max_instances: 2
      max_idle_agent_period: 2s
      max_agent_starting_period: 5m
"""
SCRIPT = """
import determined as det

with det.core.init() as context:
    for operation in context.searcher.operations():
        context.train.report_validation_metrics(steps_completed=operation.length, metrics={"loss": 1.0})
        operation.report_completed(1.0)
"""
CONFIG = """
name: grown
entrypoint: python3 train.py
max_restarts: 0
searcher: {name: random, metric: loss, max_length: {batches: 4}, max_trials: 2}
"""


def agents(cluster):
    return {agent["id"] for agent in cluster.get("agents")["agents"]}


@pytest.mark.full
def test_a_pool_grows_from_nothing_for_a_search_and_shrinks_again(local_cluster, tmp_path):
    (tmp_path / "pools.yaml").write_text(POOLS)
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "config.yaml").write_text(CONFIG)
    cluster = local_cluster(agents=0, pools_file=str(tmp_path / "pools.yaml"))
    home = cluster.home.path / "on-demand" / "default"
    assert agents(cluster) == set()
    id = cluster.create("config.yaml", tmp_path)
    wait_for(lambda: process_records.running_pid(home / "default-1"), 60, "the first worker to be started")
    # It remembers nothing, and finds again what it has started.
    cluster.kill("provisioner")
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    wait_for(lambda: agents(cluster) == set(), 60, "the workers to be given back")
    wait_for(lambda: not any(home.iterdir()), 60, "nothing to be left of them")
    output = cluster.det("why", "pool", "default").stdout
    assert "pool default asked for worker default-1:" in flat(output)
    assert "that no worker has; first of experiment 1 [scheduler]" in flat(output)
    assert "nothing was left of worker default-1" in output
    explanation = flat(cluster.det("why", "worker", "default-1").stdout)
    assert "Worker default-1: Not connected" in explanation
    assert "it had no work for 2 s (max_idle_agent_period)" in explanation
    # Two were asked for, and none of them twice.
    assert explanation.count("agent default-1 offered 1 slot") == 1
    assert "default-3" not in output


def flat(text):
    return " ".join(text.split())
