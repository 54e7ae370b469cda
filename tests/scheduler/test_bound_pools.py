"""Pools that are bound to workspaces, as the scheduler goes by them."""

import pytest

from det_contracts.commands import ChangeJob, SubmitTask
from det_contracts.events import gateway, searcher
from det_contracts.problems import Refused


@pytest.fixture
def lab(cluster):
    """Pools default and gpu, the second of workspace 2 alone; experiment 1 in workspace 1, 2 in the other."""
    cluster.worker("a", 2)
    cluster.worker("b", 2, pool="gpu")
    cluster.decisions_after(
        gateway.WorkspaceSet(workspace_id=2, name="nlp", owner="admin", reason="test"),
        gateway.ProjectSet(project_id=2, workspace_id=2, name="p", owner="admin", reason="test"),
        gateway.PoolBound(pool="gpu", workspaces=(2,), reason="test"),
    )
    for id in (1, 2):
        cluster.decisions_after(
            searcher.ExperimentCreated(
                experiment_id=id,
                user="admin",
                config={"resources": {"resource_pool": "default"}},
                original_config="",
                project_id=id,
                reason="test",
            )
        )
    return cluster


def submit(lab, workspace, pool="gpu"):
    command = SubmitTask(
        task_id=f"t-{workspace}-{pool}",
        kind="COMMAND",
        user="admin",
        name="",
        config={},
        slots=1,
        pool=pool,
        workspace_id=workspace,
    )
    return lab.fold.rule(command)


def test_tasks_from_elsewhere_are_refused(lab):
    with pytest.raises(Refused, match="not available to workspace id 1"):
        submit(lab, 1)
    submit(lab, 1, "default")
    submit(lab, 2)
    assert {allocation.pool for allocation in lab.state.allocations.values()} == {"default", "gpu"}


def test_a_job_moves_only_to_a_pool_of_its_workspace(lab):
    with pytest.raises(Refused, match="bound to others than 'Uncategorized'"):
        lab.fold.rule(ChangeJob(experiment_id=1, user="admin", resource_pool="gpu"))
    lab.fold.rule(ChangeJob(experiment_id=2, user="admin", resource_pool="gpu"))
    assert (lab.state.jobs[1].pool, lab.state.jobs[2].pool) == ("default", "gpu")


def test_it_counts_where_the_experiment_is_filed_now(lab):
    lab.decisions_after(gateway.ExperimentMoved(1, 2, "test"))
    lab.fold.rule(ChangeJob(experiment_id=1, user="admin", resource_pool="gpu"))
    assert lab.state.jobs[1].pool == "gpu"
