"""Which jobs the queue lists, in which order, and what a part of it costs."""

import json
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from det_contracts.commands import ChangeJob
from det_contracts.events import gateway
from det_contracts.queries import Jobs
from services.scheduler import queries
from services.scheduler.domain.state import job_queue_key
from tests.scheduler.conftest import Scheduling

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "scheduling-vectors.json").read_text())
INFO = VECTORS["job_queue_info"]
POOLS = ("default", "other")
SCHEDULERS = ("priority", "fair_share", "round_robin")


@pytest.mark.parametrize("scheduler", ["priority", "fair_share"])
def test_how_many_are_ahead_of_a_job(cluster, scheduler):
    cluster.pool(scheduler=scheduler)
    priorities = {group["id"]: group["priority"] for group in INFO["groups"]}
    numbers = {}
    for trial, task in enumerate(INFO["tasks"], 1):
        if task["job"] not in numbers:
            numbers[task["job"]] = int(task["job"].removeprefix("job"))
            cluster.job(numbers[task["job"]], priority=priorities[task["group"]])
        cluster.request(trial, slots=task["slots"], experiment=numbers[task["job"]])
    rows = {row["experiment_id"]: row for row in queries.jobs(cluster.state, Jobs())}
    facts = INFO["priority_scheduler" if scheduler == "priority" else scheduler]
    expected = {job: fact["jobs_ahead"] for job, fact in facts.items() if "jobs_ahead" in fact}
    assert len(expected) >= 2
    assert {job: rows[numbers[job]]["jobs_ahead"] for job in expected} == expected


class Counted(dict):
    """A table that counts how often a record is looked up."""

    looks = 0

    def __getitem__(self, key):
        self.looks += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_of_a_long_queue_only_what_is_asked_for_is_read(cluster, scheduler):
    cluster.pool(scheduler=scheduler)
    for id in range(1, 61):
        cluster.job(id)
        cluster.request(id, experiment=id)
    cluster.state.jobs = Counted(cluster.state.jobs)
    cluster.state.allocations = Counted(cluster.state.allocations)
    assert len(queries.jobs(cluster.state, Jobs(limit=3))) == 3
    # One look more finds whether a job follows; a waiting request is looked at twice for its row.
    assert cluster.state.jobs.looks <= 4
    assert cluster.state.allocations.looks <= 6
    assert len(queries.jobs(cluster.state, Jobs(offset=50, limit=3))) == 3
    assert cluster.state.allocations.looks <= 12, "those before them are not described"


def listed_by_sorting(state):
    """The queue found by going through everything there is: its jobs, with how many are ahead of each."""
    for pool in sorted(state.pools):
        book = state.index.books[pool]
        requests = [*book.waiting.values(), *(run.request for run in book.running.values())]
        requests += state.index.gate.not_admitted(pool)
        wanting = {int(request.group) for request in requests}
        jobs = sorted(
            (job for job in state.jobs.values() if job.pool == pool and job.experiment_id in wanting),
            key=job_queue_key,
        )
        ordered = state.pools[pool].settings.scheduler == "priority"
        for ahead, job in enumerate(jobs):
            mine = [r for r in requests if r.group == str(job.experiment_id)]
            held = [r for r in mine if r.allocation_id in book.running]
            sums = sum(r.slots for r in mine), sum(r.slots for r in held)
            yield job.experiment_id, ahead if ordered else -1, bool(held), *sums


def rows_of(state, **query):
    return [
        (
            row["experiment_id"],
            row["jobs_ahead"],
            row["state"] != "QUEUED",
            row["slots_requested"],
            row["slots_allocated"],
        )
        for row in queries.jobs(state, Jobs(**query))
    ]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("request", "request", "worker", "exit", "stop", "move", "priority", "quota")),
        st.integers(1, 6),
        st.integers(0, 2),
    ),
    max_size=14,
)


@given(STEPS, st.sampled_from(SCHEDULERS), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_the_queue_and_its_parts_are_what_sorting_everything_finds(steps, scheduler, each):
    cluster = Scheduling()
    cluster.decisions_after(gateway.UserSet(user_id=3, username="ann", reason="test"))
    for pool in POOLS:
        cluster.pool(pool, scheduler=scheduler)
    for id in range(1, 7):
        cluster.job(id, priority=(10, 42)[id % 2])
    for trial, (step, id, size) in enumerate(steps, 1):
        take(cluster, step, id, size, trial)
    plain = list(listed_by_sorting(cluster.state))
    assert rows_of(cluster.state) == plain
    parts = (rows_of(cluster.state, offset=at, limit=each) for at in range(0, len(plain) + 1, each))
    assert list(chain.from_iterable(parts)) == plain
    alone = (rows_of(cluster.state, experiment_id=id) for id in range(1, 8))
    assert sorted(chain.from_iterable(alone)) == sorted(plain)


def take(cluster, step, id, size, trial):
    """One thing that happens in a cluster."""
    if step == "request":
        cluster.request(trial, slots=size, experiment=id)
    elif step == "worker":
        cluster.worker(f"w{trial}", slots=size, pool=POOLS[id % 2])
    elif step == "exit":
        for allocation in list(cluster.state.allocations.values())[:1]:
            if allocation.members:
                cluster.exited(allocation.trial_id, worker_id=allocation.members[0].worker_id)
    elif step == "stop":
        for allocation in list(cluster.state.allocations.values())[-1:]:
            cluster.stop(allocation.trial_id)
    elif step == "move":
        cluster.rule(ChangeJob(experiment_id=id, user="bob", resource_pool=POOLS[size % 2]))
    elif step == "priority":
        cluster.rule(ChangeJob(experiment_id=id, user="bob", priority=1 + size))
    else:
        cluster.decisions_after(gateway.QuotaSet(holder="user-3", slots=size, reason="test"))
