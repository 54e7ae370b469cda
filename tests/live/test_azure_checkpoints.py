"""Checkpoints in a container of Azure, from the script to the collection, on a real cluster."""

import textwrap

import pytest

from tests.fixtures.azure_server import ACCOUNT_KEY, CONTAINER, azure_server
from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(600)
SCRIPT = """
import determined as det
with det.core.init() as core_context:
    for op in core_context.searcher.operations():
        for step in (1, 2):
            with core_context.checkpoint.store_path({"steps_completed": step}) as (path, uuid):
                (path / "weights").write_text(f"of step {step}")
        core_context.train.report_validation_metrics(1, {"loss": 1.0})
        op.report_completed(1.0)
"""
CONFIG = """
entrypoint: python3 train.py
searcher: {{name: single, metric: loss, max_length: 1}}
max_restarts: 0
checkpoint_storage:
  type: azure
  container: {container}
  account_url: "{url}"
  credential: "{key}"
  save_trial_best: 0
"""


@pytest.fixture
def azure():
    with azure_server() as server:
        yield server


def write(folder, **of):
    folder.mkdir()
    (folder / "train.py").write_text(textwrap.dedent(SCRIPT))
    (folder / "config.yaml").write_text(CONFIG.format(**{"container": CONTAINER, "key": ACCOUNT_KEY, **of}))
    return folder


def test_from_the_script_to_the_collection(cluster, azure, tmp_path):
    id = cluster.create("config.yaml", write(tmp_path / "code", url=azure.url))
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED", cluster.logs(cluster.first_trial(id))
    assert ACCOUNT_KEY not in cluster.det("experiment", "config", id).stdout

    def states():
        checkpoints = cluster.get(f"experiments/{id}/checkpoints")["checkpoints"]
        return sorted((checkpoint["state"], checkpoint["uuid"]) for checkpoint in checkpoints)

    expected = ["STATE_COMPLETED", "STATE_DELETED"]
    wait_for(lambda: [state for state, _ in states()] == expected, 120, "collection")
    (_, retained), (_, gone) = states()
    assert any(key.startswith(f"{retained}/") for key in azure.objects)
    assert not any(key.startswith(gone) for key in azure.objects)
    cluster.det("checkpoint", "download", retained, "-o", tmp_path / "back")
    assert (tmp_path / "back" / "weights").read_text() == "of step 2"


def test_a_wrong_credential_is_reported_at_submission(cluster, azure, tmp_path):
    folder = write(tmp_path / "code", url=azure.url, key=ACCOUNT_KEY[::-1].strip("=") + "==")
    done = cluster.det("experiment", "create", "config.yaml", ".", cwd=folder, check=False)
    assert done.returncode == 1
    assert f"container {CONTAINER} at {azure.url}: it answers AuthenticationFailed" in done.stderr
    assert azure.objects == {}
