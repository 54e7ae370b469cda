"""Databases are rebuilt while a cluster runs, as an administrator asks: the answers stay the same."""

import pytest

from determined.common.api.errors import APIException
from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(600)
SCRIPT = """
import determined as det
with det.core.init() as core:
    for op in core.searcher.operations():
        core.train.report_validation_metrics(op.length, {"loss": 0.5})
        op.report_completed(0.5)
"""
SEARCH = {"searcher": {"name": "random", "metric": "loss", "max_length": 3, "max_trials": 4}}


def answers(cluster, id):
    return cluster.experiment(id), cluster.trials(id), cluster.get(f"why/experiment/{id}")


def is_rebuilt(cluster, owner, before):
    try:
        progress = {
            program["program"]: program["progress"] for program in cluster.get("master/rebuild")["programs"]
        }
    except (APIException, OSError, AssertionError):
        return False
    return cluster.pid(owner) not in (0, before) and not progress[owner]


@pytest.mark.parametrize("rounds", [2])
def test_each_service_rebuilds_its_database_and_answers_as_before(local_cluster, rounds):
    cluster = local_cluster(slots=2)
    id = cluster.submit(SCRIPT, **SEARCH)
    cluster.wait_for_end(id)
    before = answers(cluster, id)
    for _ in range(rounds):
        for owner in ("searcher", "scheduler", "checkpoints", "webhooks", "gateway"):
            pid = cluster.pid(owner)
            cluster.api("POST", "master/rebuild", user="admin", json={"program": owner})
            wait_for(lambda pid=pid, owner=owner: is_rebuilt(cluster, owner, pid), 120, f"{owner} to be back")
            assert '"event": "service.starts_again"' in cluster.log(owner)
    assert answers(cluster, id) == before
    # It goes on working, and nobody began again for ever.
    again = cluster.submit(SCRIPT, **SEARCH)
    cluster.wait_for_end(again)
    for owner in ("searcher", "gateway"):
        assert cluster.log(owner).count('"event": "service.starts_again"') == rounds
