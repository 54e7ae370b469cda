"""The queue: places, shares, moves between pools; and what is refused."""

import pytest

from det_contracts.commands import ChangeJob, SubmitTask
from det_contracts.events import scheduler, searcher
from det_contracts.problems import Refused
from det_contracts.queries import Fits, Jobs, Pools, PreviewChange, Waiting
from services.scheduler.queries import ANSWERS


def change(cluster, id, **changes):
    return cluster.rule(ChangeJob(experiment_id=id, user="bob", **changes))


def ask(cluster, query):
    return ANSWERS[type(query)](cluster.state, query)


@pytest.fixture
def queue(cluster):
    """Three jobs of equal priority that wait for one slot."""
    cluster.pool(scheduler="priority")
    for id in (1, 2, 3):
        cluster.job(id)
        cluster.request(id, experiment=id)
    return cluster


def order(cluster):
    return [row["experiment_id"] for row in ask(cluster, Jobs())]


def test_jobs_stand_in_the_order_of_their_submission(queue):
    rows = ask(queue, Jobs())
    assert [row["experiment_id"] for row in rows] == [1, 2, 3]
    assert [row["jobs_ahead"] for row in rows] == [0, 1, 2]
    assert {row["state"] for row in rows} == {"QUEUED"}
    assert all(row["waits_for"] for row in rows)


def test_what_a_job_waits_for_is_named_as_users_know_it(cluster):
    cluster.pool(scheduler="priority", preemption=True)
    cluster.job(1, priority=50)
    cluster.worker(slots=1)
    cluster.request(7, experiment=1)
    cluster.started(7)
    cluster.job(2, priority=40)
    cluster.request(8, experiment=2)
    waits = [row["waits_for"] for row in ask(cluster, Jobs())]
    assert "It needs 1 slot, 0 of 1 are free; trial 7 of experiment 1 was asked to leave." in waits


def test_a_task_of_somebody_is_named_by_its_kind(cluster):
    cluster.pool(scheduler="priority")
    cluster.worker(slots=2)
    cluster.job(1)
    cluster.request(7, experiment=1)
    for name, priority in (("u-1", 1), ("u-2", 50)):
        task = {"task_id": name, "kind": "NOTEBOOK", "user": "ann", "name": "mine", "config": {}}
        cluster.rule(SubmitTask(**task, slots=2 if priority == 1 else 1, pool="default", priority=priority))
    assert "It waits behind a notebook (priority 1, needs 2 slots), which does not fit yet." in {
        row["waits_for"] for row in ask(cluster, Jobs())
    }


def test_one_job_is_told_as_in_the_whole_queue(queue):
    queue.job(4, priority=1)
    queue.request(4, experiment=4)
    rows = ask(queue, Jobs())
    assert [ask(queue, Jobs(experiment_id=row["experiment_id"])) for row in rows] == [[row] for row in rows]
    queue.job(5)
    assert ask(queue, Jobs(experiment_id=5)) == []
    assert ask(queue, Jobs(experiment_id=99)) == []


def test_a_long_queue_is_read_in_parts(queue):
    rows = ask(queue, Jobs())
    assert [ask(queue, Jobs(offset=at, limit=2)) for at in (0, 2, 4)] == [rows[:2], rows[2:], []]
    assert ask(queue, Jobs("default", offset=1)) == rows[1:]


def test_a_pool_counts_the_jobs_of_its_queue(queue):
    queue.worker(slots=1)
    queue.pool("other")
    queue.job(4, pool="other")
    queue.request(4, experiment=4)
    # Nothing of it waits or runs.
    queue.job(5)
    states = [(row["pool"], row["state"]) for row in ask(queue, Jobs())]
    counts = {row["name"]: (row["queued"], row["scheduled"]) for row in ask(queue, Pools())}
    assert counts == {
        pool: tuple(states.count((pool, state)) for state in ("QUEUED", "SCHEDULED"))
        for pool in ("default", "other")
    }
    assert counts == {"default": (2, 1), "other": (1, 0)}


@pytest.mark.parametrize(
    ("id", "where", "expected"),
    [
        (3, {"ahead_of": 1}, [3, 1, 2]),
        (3, {"ahead_of": 2}, [1, 3, 2]),
        (1, {"behind_of": 3}, [2, 3, 1]),
        (1, {"behind_of": 2}, [2, 1, 3]),
    ],
)
def test_a_moved_job_is_served_in_its_new_place(queue, id, where, expected):
    change(queue, id, **where)
    assert order(queue) == expected
    (assigned,) = queue.worker(slots=1)
    assert assigned.experiment_id == expected[0]


def test_moving_to_another_priority_takes_that_priority(queue):
    queue.job(4, priority=10)
    queue.request(4, experiment=4)
    change(queue, 3, ahead_of=4)
    assert order(queue) == [3, 4, 1, 2]
    assert queue.state.jobs[3].priority == 10


def test_a_new_priority_resets_the_place(queue):
    change(queue, 3, ahead_of=1)
    change(queue, 3, priority=42)
    assert order(queue) == [1, 2, 3]


def test_moving_relative_to_itself_changes_nothing(queue):
    before = queue.state.jobs[1]
    assert change(queue, 1, ahead_of=1) == []
    assert queue.state.jobs[1] == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"priority": 0}, "priority must be between 1 and 99"),
        ({"priority": 100}, "priority must be between 1 and 99"),
        ({"weight": 0.0}, "weight must be greater than 0"),
        ({"weight": float("nan")}, "weight must be greater than 0"),
        ({"max_slots": -1}, "max_slots must be 0 or more"),
        ({"resource_pool": "nope"}, "resource pool 'nope' not found; there are: default"),
        ({"ahead_of": 9}, "job 'experiment-9' not found"),
    ],
)
def test_what_makes_no_sense_is_refused_whole(queue, changes, message):
    before = dict(queue.state.jobs)
    with pytest.raises(Refused, match=message):
        change(queue, 1, **{"weight": 2.0, **changes})
    assert queue.state.jobs == before


def test_an_unknown_job_is_named(queue):
    with pytest.raises(Refused, match="job 'experiment-9' not found"):
        change(queue, 9, priority=1)


def test_only_the_priority_scheduler_moves_jobs(cluster):
    for id in (1, 2):
        cluster.job(id)
    with pytest.raises(Refused, match="unable to perform operation on resource pool with fair_share"):
        change(cluster, 2, ahead_of=1)


def test_a_job_moves_to_another_pool_with_what_waits(cluster):
    cluster.job(1)
    cluster.request(1)
    cluster.worker("other", pool="b")
    (assigned,) = change(cluster, 1, resource_pool="b")
    assert assigned.parts[0].worker_id == "other"
    (later,) = cluster.request(2)
    assert later.parts[0].worker_id == "other"


def test_pools_tell_what_they_hold(cluster):
    cluster.pool("a", scheduler="round_robin", fitting_policy="worst")
    cluster.job(1, pool="a")
    cluster.worker(pool="a", slots=3)
    cluster.request(1, slots=2)
    (row,) = [r for r in ask(cluster, Pools()) if r["name"] == "a"]
    assert (row["workers"], row["slots"], row["slots_used"], row["jobs"]) == (1, 3, 2, 1)
    assert row["settings"]["scheduler"] == "round_robin"


def test_a_request_that_can_never_fit_is_refused_with_what_would(cluster):
    assert ask(cluster, Fits(pool="default", slots=64)) == ""
    cluster.worker(slots=4)
    assert ask(cluster, Fits(pool="default", slots=4)) == ""
    sentence = ask(cluster, Fits(pool="default", slots=5))
    assert "5" in sentence
    assert "4" in sentence
    with pytest.raises(Refused, match="resource pool 'x' not found"):
        ask(cluster, Fits(pool="x", slots=1))


def test_every_waiting_request_says_why(cluster):
    cluster.worker(slots=2)
    for trial in range(1, 6):
        cluster.request(trial)
    sentences = ask(cluster, Waiting())
    assert len(sentences) == 3
    assert all(sentences.values())
    assert ask(cluster, Waiting(experiment_id=8)) == {}


def test_a_configuration_that_is_so_already_decides_nothing(cluster):
    cluster.pool("a", preemption=True)
    assert cluster.fold.decide() == []
    decided = cluster.pool("a", preemption=True)
    assert not [e for e in decided if isinstance(e, scheduler.PoolConfigured)]
    assert cluster.state.pools["a"].settings.preemption


def test_what_runs_elsewhere_has_no_job(cluster):
    cluster.decisions_after(
        searcher.ExperimentCreated(
            experiment_id=5, user="ann", config={}, original_config="", unmanaged=True, reason="test"
        )
    )
    assert 5 not in cluster.state.jobs
    with pytest.raises(Refused, match="experiment-5"):
        cluster.rule(ChangeJob(experiment_id=5, priority=3, user="ann"))
    cluster.decisions_after(searcher.ExperimentEnded(5, "COMPLETED", "all its trials have ended"))


def test_a_change_is_previewed_before_it_is_made(queue):
    queue.worker(slots=1)
    preview = ask(queue, PreviewChange(ChangeJob(experiment_id=3, user="bob", ahead_of=2)))
    assert preview == {"order": [1, 3, 2], "starts": [], "leave": []}
    assert order(queue) == [1, 2, 3], "nothing has changed"
    with pytest.raises(Refused, match="priority must be between"):
        ask(queue, PreviewChange(ChangeJob(experiment_id=3, user="bob", priority=0)))


def test_whom_a_change_would_ask_to_leave(cluster):
    cluster.pool(scheduler="priority", preemption=True)
    for id in (1, 2):
        cluster.job(id)
        cluster.request(id, experiment=id)
    cluster.worker(slots=1)
    preview = ask(cluster, PreviewChange(ChangeJob(experiment_id=2, user="bob", priority=1)))
    assert preview == {"order": [2, 1], "starts": [], "leave": [1]}
    (preemption,) = change(cluster, 2, priority=1)
    assert preemption.allocation_id == "1.t1.1", "as it then is"
