"""Roles on a real cluster: stated by the gateway's settings, gone by by all services."""

import textwrap

import pytest

from tests.fixtures.local_cluster import TERMINAL, wait_for

pytestmark = pytest.mark.timeout(300)
CONFIG = """
name: hidden
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 1}
resources: {slots_per_trial: 1}
max_restarts: 0
workspace: Vision
project: Digits
"""
WAITS = """
    import pathlib, time
    import determined as det
    with det.core.init() as core_context:
        for op in core_context.searcher.operations():
            while not pathlib.Path("{go}").exists():
                time.sleep(0.05)
            core_context.train.report_validation_metrics(1, {{"loss": 1.0}})
            with core_context.checkpoint.store_path({{"steps_completed": 1}}) as (path, uuid):
                (path / "weights").write_text("x")
            op.report_completed(1.0)
"""
EDITOR = {"role": {"roleId": 5}}


def refused(cluster, method, path, **options):
    """The status that the default user is refused with."""
    with pytest.raises(AssertionError) as caught:
        cluster.api(method, path, **options)
    return int(str(caught.value).split(": ")[1][:3])


def test_roles_hide_a_workspace_and_a_run_is_heard_to_its_end(local_cluster, tmp_path):
    cluster = local_cluster(slots=1, settings={"STEADFAST_AUTHZ": "rbac"})
    assert refused(cluster, "POST", "workspaces", json={"name": "mine"}) == 403
    space = cluster.api("POST", "workspaces", user="admin", json={"name": "Vision"})["workspace"]["id"]
    project = {"json": {"name": "Digits"}}
    cluster.api("POST", f"workspaces/{space}/projects", user="admin", **project)
    assignment = {"userId": 2, "roleAssignment": EDITOR | {"scopeWorkspaceId": space}}
    roles = {"json": {"userRoleAssignments": [assignment]}}
    cluster.api("POST", "roles/add-assignments", user="admin", **roles)

    folder, go = tmp_path / "code", tmp_path / "go"
    folder.mkdir()
    (folder / "train.py").write_text(textwrap.dedent(WAITS.format(go=go)))
    (folder / "config.yaml").write_text(CONFIG)
    id = cluster.create("config.yaml", folder)
    assert [experiment["id"] for experiment in cluster.get("experiments")["experiments"]] == [id]

    cluster.api("POST", "roles/remove-assignments", user="admin", **roles)
    assert cluster.get("experiments")["experiments"] == []
    for method, path in (("GET", f"experiments/{id}"), ("POST", f"experiments/{id}/kill")):
        assert refused(cluster, method, path) == 404
    go.touch()

    def over():
        return cluster.api("GET", f"experiments/{id}", user="admin")["experiment"]["state"] in TERMINAL

    wait_for(over, 120, "the run of somebody without a role to end")
    cluster.api("POST", "roles/add-assignments", user="admin", **roles)
    assert cluster.experiment(id)["state"] == "STATE_COMPLETED", cluster.logs(cluster.first_trial(id))
    assert len(cluster.get(f"experiments/{id}/checkpoints")["checkpoints"]) == 1
