"""Checkpoints where people say they are, on a real cluster: nothing of the platform's goes or is read."""

import textwrap

import pytest
import requests

from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(600)
CONFIG = """
entrypoint: python3 train.py
searcher: {{name: single, metric: loss, max_length: 1}}
resources: {{slots_per_trial: 1}}
max_restarts: 0
checkpoint_storage:
  {{type: shared_fs, host_path: "{path}", save_trial_best: 0, save_trial_latest: 0, save_experiment_best: 0}}
"""
END = """
    for op in core_context.searcher.operations():
        core_context.train.report_validation_metrics(1, {"loss": 1.0})
        op.report_completed(1.0)
"""
LIES = """
import os, requests
import determined as det
with det.core.init() as core_context:
    info = det.get_cluster_info()
    for uuid in ("secrets", "blobs", "databases", "broker"):
        body = {"uuid": uuid, "taskId": info.task_id, "allocationId": info.allocation_id,
                "resources": {"token-key": 64}, "metadata": {"steps_completed": 1}}
        headers = {"Authorization": "Bearer " + info.session_token}
        requests.post(info.master_url + "/api/v1/checkpoints", json=body, headers=headers).raise_for_status()
"""
STORES = """
import determined as det
with det.core.init() as core_context:
    with core_context.checkpoint.store_path({"steps_completed": 1}) as (path, uuid):
        (path / "weights").write_text("x")
"""


def ran(cluster, folder, path, script):
    folder.mkdir()
    (folder / "train.py").write_text(textwrap.dedent(script) + END)
    (folder / "config.yaml").write_text(CONFIG.format(path=path))
    id = cluster.create("config.yaml", folder)
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED", cluster.logs(cluster.first_trial(id))
    return id


def states(cluster, id):
    checkpoints = cluster.get(f"experiments/{id}/checkpoints")["checkpoints"]
    return {checkpoint["uuid"]: checkpoint["state"] for checkpoint in checkpoints}


def collected(cluster, id):
    """What the first task that deletes has said."""
    try:
        return "".join(line["log"] for line in cluster.stream(f"tasks/{id}.gc-1/logs"))
    except KeyError:
        # It is not there yet.
        return ""


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_the_platforms_is_neither_collected_nor_read(cluster, tmp_path):
    home = cluster.home.path
    before = contents(home / "secrets")
    id = ran(cluster, tmp_path / "code", home, LIES)
    refused = "belongs to the platform itself"
    wait_for(lambda: refused in collected(cluster, id), 60, "collection")
    assert set(states(cluster, id).values()) == {"STATE_COMPLETED"}
    assert contents(home / "secrets") == before
    assert all((home / name).is_dir() for name in ("blobs", "databases", "broker"))
    for uuid in states(cluster, id):
        headers = {"Authorization": f"Bearer {cluster._token}"}
        answer = requests.get(f"{cluster.address}/checkpoints/{uuid}", headers=headers, timeout=60)
        assert (answer.status_code, refused in answer.text) == (404, True)


def test_a_directory_of_ones_own_is_collected(cluster, tmp_path):
    """As guides have it: `host_path` in /tmp."""
    id = ran(cluster, tmp_path / "code", tmp_path / "anything", STORES)
    wait_for(lambda: set(states(cluster, id).values()) == {"STATE_DELETED"}, 120, "collection")
    assert not list((tmp_path / "anything").rglob("weights"))
