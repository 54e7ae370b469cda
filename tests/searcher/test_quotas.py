"""Quotas of jobs, as the searcher goes by them."""

import pytest

from det_contracts import ids
from det_contracts.commands import ChangeExperiment, CreateExperiment
from det_contracts.events import gateway, scheduler, searcher
from det_contracts.expconf import complete
from det_contracts.problems import Refused
from services.kit.overlay import view_of
from services.kit.quotas import limits
from services.searcher.domain import State

CONFIG = {
    "entrypoint": "true",
    "hyperparameters": {},
    "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"},
}
SINGLE = {"name": "single", "max_length": 10}


@pytest.fixture
def limited(searching):
    searching.decisions_after(gateway.UserSet(user_id=3, username="ann", reason="test"))
    searching.decisions_after(gateway.QuotaSet(holder="user-3", jobs=2, reason="test"))
    return searching


def task(number, user="ann"):
    return scheduler.TaskSubmitted(
        task_id=f"t{number}",
        number=number,
        kind="COMMAND",
        user=user,
        name="t",
        config={},
        slots=0,
        pool="default",
        workspace_id=1,
        reason="test",
    )


def has(limited):
    return limits.usage_of(limited.state, limited.state.open_jobs)["user-3"]


def test_one_experiment_too_many_is_refused_and_changes_nothing(limited):
    limited.submit(SINGLE)
    limited.submit(SINGLE, activate=False)
    with pytest.raises(Refused, match="user 'ann' has 2 of the 2 jobs") as refusal:
        limited.submit(SINGLE)
    assert refusal.value.problem.code == "permission_denied"
    assert len(limited.state.experiments) == 2


def test_what_has_ended_counts_no_more(limited):
    first, _ = limited.submit(SINGLE), limited.submit(SINGLE)
    limited.fold.rule(ChangeExperiment(experiment_id=first, action="kill", user="ann"))
    limited.decide()
    assert has(limited) == 2, "as long as a trial of it runs"
    limited.end_run(1, "killed", None, "killed")
    assert has(limited) == 1
    limited.submit(SINGLE)


def test_tasks_count_until_they_are_over(limited):
    limited.decisions_after(task(1), task(2, "ben"))
    limited.submit(SINGLE)
    with pytest.raises(Refused, match="has 2 of the 2 jobs"):
        limited.submit(SINGLE)
    over = ids.allocation_id("t1", 1)
    limited.decisions_after(
        scheduler.AllocationEnded(allocation_id=over, kind="COMMAND", run=1, outcome="succeeded", reason="t")
    )
    limited.submit(SINGLE)


def test_a_workspace_is_limited_whoever_asks_and_wherever_it_is_filed(limited):
    limited.decisions_after(
        gateway.WorkspaceSet(workspace_id=2, name="nlp", owner="admin", reason="test"),
        gateway.ProjectSet(project_id=2, workspace_id=2, name="p", owner="admin", reason="test"),
        gateway.QuotaSet(holder="user-3", reason="test"),
        gateway.QuotaSet(holder="workspace-2", jobs=0, reason="test"),
    )
    id = limited.submit(SINGLE)
    limited.decisions_after(gateway.ExperimentMoved(id, 2, "test"))
    assert limits.usage_of(limited.state, limited.state.open_jobs) == {"workspace-2": 1}
    config = complete({**CONFIG, "searcher": {"metric": "loss", **SINGLE}}, seed=7, name="test")
    command = CreateExperiment(user="ben", config=config, original_config="", activate=True, project_id=2)
    with pytest.raises(Refused, match="workspace 'nlp' has 1 of the 0 jobs"):
        limited.fold.rule(command)


def test_what_runs_elsewhere_is_in_no_queue(limited):
    limited.decisions_after(gateway.QuotaSet(holder="user-3", jobs=0, reason="test"))
    limited.decisions_after(
        searcher.ExperimentCreated(
            experiment_id=1,
            user="ann",
            config={
                "resources": {"slots_per_trial": 1, "resource_pool": ""},
                "max_restarts": 0,
                "searcher": {},
            },
            original_config="",
            unmanaged=True,
            reason="test",
        )
    )
    assert has(limited) == 0


def test_a_rebuild_counts_the_same(limited):
    limited.decisions_after(task(1))
    limited.submit(SINGLE)
    state = limited.state
    names = ("experiments", "trials", "open_tasks", "homes", "quotas", "people", "people_names", "tasks")
    again = State(**{name: dict(getattr(state, name)) for name in names})
    assert limits.usage_of(again, again.open_jobs) == limits.usage_of(state, state.open_jobs) == {"user-3": 2}


def test_what_a_round_has_let_through_counts_for_the_next_of_it(limited):
    """Commands of one round are ruled on in a view, which counts by itself and changes nothing below."""
    limited.decisions_after(task(1))
    view = view_of(limited.state)
    view.open_jobs.set(99, limits.account_of(view, 99), 1)
    view.open_jobs.remove(-1)
    assert (view.open_jobs.amount(99), view.open_jobs.amount(-1)) == (1, 0)
    assert (limited.state.open_jobs.amount(99), has(limited)) == (0, 1)
