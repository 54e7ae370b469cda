"""The index is a function of the records: kept up piece by piece it equals one built anew."""

import contextlib
import random

import pytest

from det_contracts.commands import ChangeJob, SwitchSlot, SwitchWorker
from det_contracts.events import scheduler, searcher, worker
from det_contracts.problems import Refused
from services.scheduler.domain import State
from tests.fixtures.tiers import rest_in_full


def picture(state):
    """What an index holds, without what it keeps only to be quick."""
    books = {
        name: {
            "agents": book.agents,
            "groups": {n: g for n, g in book.groups.items() if n in book.queues},
            "waiting": book.waiting,
            "running": book.running,
            "used": book.used,
            "expected": book.expected,
        }
        for name, book in state.index.books.items()
    }
    occupancy = state.occupancy
    held = {w: (sorted(occupancy.held_on(w)), occupancy.taken_on(w)) for w in state.workers}
    counts = {name: state.index.job_counts.of(name) for name in state.pools}
    return books, held, {job: sorted(occupancy.of_job(job)) for job in range(1, 8)}, counts


def anew(state):
    records = {
        name: getattr(state, name)
        for name in ("workers", "allocations", "jobs", "pools", "deadlines", "pauses")
    }
    return State(**{name: dict(table) for name, table in records.items()})


class Chance:
    """Random messages to a scheduler."""

    def __init__(self, cluster, seed):
        self.cluster = cluster
        self.random = random.Random(seed)
        self.trials = 0

    def step(self):
        kinds = [self.host, self.job, self.request, self.request, self.begin, self.end, self.end]
        kinds += [self.switch, self.change, self.stop, self.lose, self.finish]
        self.random.choice(kinds)()

    def host(self):
        name = f"w{self.random.randint(1, 4)}"
        slots = sorted(self.random.sample(range(4), self.random.randint(1, 4)))
        held = [id for id in self.cluster.state.occupancy.held_on(name) if self.random.random() < 0.7]
        session = f"s{self.random.random()}"
        pool = self.random.choice(["default", "b"])
        self.cluster.worker(name, slots, session, held, 10**9, pool)

    def job(self):
        jobs = self.cluster.state.jobs
        free = [id for id in range(1, 8) if id not in jobs]
        if free:
            resources = {
                "priority": self.random.choice([None, 10, 60]),
                "max_slots": self.random.choice([None, 2]),
            }
            self.cluster.job(self.random.choice(free), self.random.choice(["", "b"]), **resources)

    def request(self):
        self.trials += 1
        experiment = self.random.randint(1, 7)
        self.cluster.request(self.trials, self.random.choice([0, 1, 1, 2, 4]), experiment=experiment)

    def allocation(self):
        allocations = [a for a in self.cluster.state.allocations.values() if a.members]
        return self.random.choice(allocations) if allocations else None

    def begin(self):
        if allocation := self.allocation():
            member = self.random.choice(allocation.members)
            self.cluster.decisions_after(worker.AllocationStarted(member.worker_id, allocation.id))

    def end(self):
        if allocation := self.allocation():
            member = self.random.choice(allocation.members)
            code = self.random.choice([0, 1, 137, None])
            self.cluster.decisions_after(
                worker.AllocationExited(
                    worker_id=member.worker_id, allocation_id=allocation.id, exit_code=code
                )
            )

    def stop(self):
        allocations = list(self.cluster.state.allocations.values())
        if allocations:
            allocation = self.random.choice(allocations)
            stop = searcher.StopRequested(
                trial_id=1, allocation_id=allocation.id, kill=self.random.random() < 0.5, reason="a whim"
            )
            self.cluster.decisions_after(stop)

    def lose(self):
        if self.random.random() < 0.3:
            self.cluster.decisions_after(scheduler.WorkerLost(f"w{self.random.randint(1, 4)}", "silent"))

    def finish(self):
        if self.random.random() < 0.3:
            self.cluster.decisions_after(
                searcher.ExperimentEnded(self.random.randint(1, 7), "COMPLETED", "done")
            )

    def switch(self):
        enabled, drain = self.random.random() < 0.6, self.random.random() < 0.5
        name, slot = f"w{self.random.randint(1, 4)}", self.random.randint(0, 3)
        self.command(SwitchWorker(worker_id=name, enabled=enabled, drain=drain, user="bob"))
        self.command(SwitchSlot(worker_id=name, slot_id=slot, enabled=not enabled, drain=drain, user="bob"))

    def change(self):
        changes = self.random.choice(
            [{"priority": 5}, {"weight": 3.0}, {"max_slots": 1}, {"resource_pool": "b"}, {"ahead_of": 2}]
        )
        self.command(ChangeJob(experiment_id=self.random.randint(1, 7), user="bob", **changes))

    def command(self, command):
        with contextlib.suppress(Refused):
            self.cluster.rule(command)


def begin_with_two_pools(cluster, kind, preemption):
    """Two pools with a worker each, and three jobs."""
    for pool in ("default", "b"):
        cluster.pool(pool, scheduler=kind, preemption=preemption)
    for id in range(1, 4):
        cluster.job(id, "b" if id == 3 else "")
    cluster.worker("w1", 4)
    cluster.worker("w2", 4, pool="b")


@pytest.mark.parametrize("kind", ["priority", "fair_share", "round_robin"])
@pytest.mark.parametrize("seed", rest_in_full(range(6), 2))
def test_kept_up_it_equals_one_built_anew(cluster, kind, seed):
    begin_with_two_pools(cluster, kind, preemption=seed % 2 == 0)
    chance = Chance(cluster, seed)
    assigned = 0
    for _ in range(250):
        chance.step()
        state = cluster.state
        assert picture(state) == picture(anew(state))
        holders = [
            (m.worker_id, slot)
            for a in state.allocations.values()
            for m in a.members
            if not m.over
            for slot in m.slots
        ]
        assert len(holders) == len(set(holders)), "a slot is held twice"
        placed = [a for a in state.allocations.values() if a.members]
        assert all(sum(len(m.slots) for m in a.members) == a.slots for a in placed), "a run lacks slots"
        assigned += len(holders)
    assert assigned > 25
