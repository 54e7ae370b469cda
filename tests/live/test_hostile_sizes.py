"""The largest thing allowed, and one byte more: an error for who sends it, and nothing for anybody else."""

import json

import pytest
import requests

from det_contracts.limits import MESSAGE_BYTES, STATED_BYTES
from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(300)

CUSTOM = """
name: huge
entrypoint: "true"
searcher: {name: custom, metric: loss}
"""
SIZES = {
    "just below the limit": STATED_BYTES - 2048,
    "just above the limit": STATED_BYTES,
    "what the broker takes": MESSAGE_BYTES - 175,
    "more than the broker takes": 2 * MESSAGE_BYTES,
}


@pytest.fixture
def custom(cluster, tmp_path):
    """An experiment whose operations come over REST."""
    (tmp_path / "config.yaml").write_text(CUSTOM)
    (tmp_path / "code").mkdir()
    id = cluster.create("../config.yaml", tmp_path / "code")
    wait_for(lambda: events_of(cluster, id), 60, "its first event")
    yield id
    cluster.api("POST", f"experiments/{id}/kill")


def events_of(cluster, id):
    return cluster.get(f"experiments/{id}/searcher_events")["searcherEvents"]


@pytest.mark.parametrize("size", SIZES)
def test_hyperparameters_of_any_size_stop_nobody(cluster, custom, size):
    searcher = cluster.pid("searcher")
    params = json.dumps({"text": "x" * SIZES[size]})
    create = {"createTrial": {"requestId": "a", "hyperparams": params}}
    body = {"searcherOperations": [create], "triggeredByEvent": {"id": events_of(cluster, custom)[0]["id"]}}
    answer = requests.post(
        f"{cluster.address}/api/v1/experiments/{custom}/searcher_operations",
        json=body,
        headers={"Authorization": f"Bearer {cluster._token}"},
        timeout=120,
    )
    if SIZES[size] < STATED_BYTES:
        assert answer.status_code == 200, answer.text
        wait_for(lambda: cluster.get(f"experiments/{custom}/trials")["trials"], 60, "the trial")
    else:
        assert 400 <= answer.status_code < 500, answer.text
        assert "too large" in answer.text
    # Whoever comes next is served, by a searcher that was not started again for it.
    cluster.api("POST", f"experiments/{custom}/pause")
    assert cluster.experiment(custom)["state"] == "STATE_PAUSED"
    assert cluster.pid("searcher") == searcher
