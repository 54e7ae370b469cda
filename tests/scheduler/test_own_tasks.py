"""Tasks that people start by themselves: queued, placed and ended like everything else."""

import pytest

from det_contracts.commands import ChangeJob, StopTask, SubmitTask
from det_contracts.events import scheduler, worker
from det_contracts.ids import job_id, owner_of_job
from det_contracts.problems import Refused
from det_contracts.queries import Jobs
from services.scheduler.app import RULES
from services.scheduler.domain.records import TASKS_KEPT_S


def of(kind, events):
    return [e for e in events if isinstance(e, kind)]


def submit(cluster, id="t-1", slots=1, kind="COMMAND", **more):
    values = {"task_id": id, "kind": kind, "user": "ann", "name": id, "config": {}, "slots": slots}
    return cluster.rule(SubmitTask(**{"pool": "default", **values, **more}))


def exited(cluster, id="t-1", code=0):
    return cluster.decisions_after(
        worker.AllocationExited(worker_id="w1", allocation_id=f"{id}.1", exit_code=code)
    )


def jobs(cluster):
    return [row["job_id"] for row in RULES.answers[Jobs](cluster.state, Jobs(None))]


def test_it_gets_slots_runs_once_and_its_job_goes(cluster):
    cluster.worker(slots=2)
    (assigned,) = of(scheduler.AllocationAssigned, submit(cluster))
    assert (assigned.kind, assigned.task_id, assigned.trial_id) == ("COMMAND", "t-1", None)
    assert jobs(cluster) == ["task-1"]
    cluster.decisions_after(worker.AllocationStarted("w1", "t-1.1"))
    (ended,) = of(scheduler.AllocationEnded, exited(cluster, code=3))
    assert (ended.outcome, ended.exit_code) == ("failed", 3)
    assert (jobs(cluster), cluster.state.allocations, cluster.state.jobs) == ([], {}, {})
    # Its number and its id are not used again.
    assert submit(cluster) == []
    submit(cluster, "t-2")
    assert jobs(cluster) == ["task-2"]


def test_it_waits_its_turn_and_may_go_ahead(cluster):
    cluster.pool(scheduler="priority")
    cluster.worker(slots=1)
    cluster.job(1)
    cluster.request(1)
    submit(cluster, "t-1")
    submit(cluster, "t-2")
    cluster.rule(ChangeJob(experiment_id=owner_of_job("task-2"), user="ann", priority=5))
    cluster.started(1)
    (assigned,) = of(scheduler.AllocationAssigned, cluster.exited(1))
    assert assigned.task_id == "t-2"


def test_one_without_slots_needs_none(cluster):
    cluster.worker(slots=1)
    cluster.request(1)
    (assigned,) = of(scheduler.AllocationAssigned, submit(cluster, slots=0, kind="TENSORBOARD"))
    assert assigned.parts[0].slots == ()


def test_it_never_spans_two_workers(cluster):
    cluster.worker("w1", slots=2)
    cluster.worker("w2", slots=2)
    assert of(scheduler.AllocationAssigned, submit(cluster, slots=4)) == []
    (assigned,) = of(scheduler.AllocationAssigned, cluster.worker("w3", slots=4))
    assert [part.worker_id for part in assigned.parts] == ["w3"]


@pytest.mark.parametrize("started", [False, True])
def test_it_is_killed(cluster, started):
    if started:
        cluster.worker()
    submit(cluster)
    decided = cluster.rule(StopTask(task_id="t-1", user="bob"))
    if started:
        (kill,) = of(scheduler.KillRequested, decided)
        assert kill.reason == "killed by bob"
        decided = exited(cluster, code=137)
    (ended,) = of(scheduler.AllocationEnded, decided)
    assert (ended.outcome, ended.reason) == ("killed", "killed by bob")
    assert cluster.rule(StopTask(task_id="t-1", user="bob")) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "a.b"}, "must be letters"),
        ({"slots": -1}, "resources.slots"),
        ({"priority": 100}, "priority must be between"),
        ({"pool": "moon"}, "resource pool 'moon' not found"),
    ],
)
def test_what_is_refused(cluster, changes, message):
    cluster.worker()
    with pytest.raises(Refused, match=message):
        submit(cluster, **changes)
    assert cluster.state.tasks == {}
    with pytest.raises(Refused, match="task 'none' not found"):
        cluster.rule(StopTask(task_id="none", user="ann"))


def test_jobs_are_named_by_what_they_are_of():
    for owner, name in ((7, "experiment-7"), (-7, "task-7")):
        assert (job_id(owner), owner_of_job(name)) == (name, owner)
    assert [owner_of_job(text) for text in ("", "task-", "x-1", "task-x", "7")] == [None] * 5


def test_it_is_forgotten_long_after_its_end_and_not_while_it_runs(cluster):
    cluster.worker(slots=2)
    submit(cluster)
    submit(cluster, "t-2")
    cluster.decisions_after(worker.AllocationStarted("w1", "t-1.1"))
    exited(cluster)
    assert of(scheduler.TaskForgotten, cluster.fold.pass_time(TASKS_KEPT_S - 1)) == []
    (forgotten,) = of(scheduler.TaskForgotten, cluster.fold.pass_time(2))
    assert forgotten.task_id == "t-1"
    assert list(cluster.state.tasks) == ["t-2"]
