"""Quotas on a real cluster: a run waits and says for what, and a script is told before it stores too much."""

import textwrap

import pytest

from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(300)
CONFIG = """
name: limited
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 1}
resources: {slots_per_trial: 1}
max_restarts: 0
# What retention deletes when the experiment ends would not count any more.
checkpoint_storage: {save_trial_latest: 100}
workspace: Limited
project: Digits
"""
STORES = """
    import errno
    import determined as det
    with det.core.init() as core_context:
        for op in core_context.searcher.operations():
            for number in range(100):
                try:
                    with core_context.checkpoint.store_path({"steps_completed": number}) as (path, uuid):
                        (path / "weights").write_text("x" * 1000)
                except OSError as error:
                    assert error.errno == errno.EDQUOT
                    print(f"after {number}: {error}")
                    break
            op.report_completed(1.0)
"""


def test_slots_and_storage_are_held_to_a_quota(cluster, tmp_path):
    space = cluster.api("POST", "workspaces", user="admin", json={"name": "Limited"})["workspace"]["id"]
    cluster.api("POST", f"workspaces/{space}/projects", user="admin", json={"name": "Digits"})
    path = f"quotas/workspace-{space}"
    cluster.api("PUT", path, user="admin", json={"slots": 0, "jobs": 1, "storageBytes": 1500})
    assert "0.0B of 1.5KB" in cluster.det("quota", "list").stdout
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text(textwrap.dedent(STORES))
    (folder / "config.yaml").write_text(CONFIG)
    id = cluster.create("config.yaml", folder)

    def waits_for():
        mine = [job for job in cluster.get("job-queues")["jobs"] if job["entityId"] == str(id)]
        return [job["waitsFor"] for job in mine if job["waitsFor"]]

    wait_for(waits_for, 60, "the queue to say what it waits for")
    assert "workspace 'Limited' may hold 0 slots at once" in waits_for()[0]
    assert "'Limited' may hold 0 slots" in cluster.det("why", "experiment", id).stdout
    again = cluster.det("e", "create", "config.yaml", ".", cwd=folder, check=False)
    assert "workspace 'Limited' has 1 of the 1 jobs" in again.stdout + again.stderr

    cluster.api("PUT", path, user="admin", json={"slots": 1, "storageBytes": 1500})
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    # What is reported takes a moment to be folded, so one or two more may be let through.
    (message,) = [line for line in cluster.logs(cluster.first_trial(id)) if "is not stored" in line]
    assert "workspace 'Limited' stores" in message
    (quota,) = [quota for quota in cluster.get("quotas")["quotas"] if quota["holder"] == f"workspace-{space}"]
    assert 1500 <= quota["used"]["storageBytes"] < 20_000
    assert (quota["used"]["slots"], quota["used"]["jobs"]) == (0, 0)
    cluster.api("DELETE", path, user="admin")
