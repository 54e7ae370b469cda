"""Quotas of slots: who is let in to the books, what others are told, and what policies still mean."""

import random

import pytest

from det_contracts.commands import ChangeJob
from det_contracts.events import gateway, scheduler, searcher
from det_contracts.queries import Jobs, Pools, Waiting
from services.kit.quotas import limits
from services.scheduler.domain import State
from services.scheduler.queries import jobs, pools, waiting
from tests.fixtures.tiers import rest_in_full
from tests.walks.counting import Meter


def assigned(events):
    return [event.allocation_id for event in events if isinstance(event, scheduler.AllocationAssigned)]


def holds(state):
    return {id for id, allocation in state.allocations.items() if allocation.members}


class Limited:
    """A cluster with people, places and quotas."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.decisions_after = cluster.decisions_after
        self.request = cluster.request
        self.worker = cluster.worker
        self.exited = cluster.exited
        for id, name in ((3, "ann"), (4, "ben"), (5, "cleo")):
            cluster.decisions_after(gateway.UserSet(user_id=id, username=name, reason="test"))
        self.place(2)

    @property
    def state(self):
        return self.cluster.state

    def place(self, id, name="nlp"):
        self.decisions_after(
            gateway.WorkspaceSet(workspace_id=id, name=name, owner="admin", reason="test"),
            gateway.ProjectSet(project_id=id, workspace_id=id, name="p", owner="admin", reason="test"),
        )

    def quota(self, holder, slots):
        return self.decisions_after(gateway.QuotaSet(holder=holder, slots=slots, reason="test"))

    def job(self, id, user="ann", project=1, pool="", **resources):
        config = {"resources": {"resource_pool": pool, **resources}}
        self.cluster.fold.now += 1
        return self.decisions_after(
            searcher.ExperimentCreated(
                experiment_id=id,
                user=user,
                config=config,
                original_config="",
                project_id=project,
                reason="test",
            )
        )

    def ended(self, trial_id):
        return self.exited(trial_id)

    def why(self, trial_id):
        return waiting(self.state, Waiting())[f"1.t{trial_id}.1"]


@pytest.fixture
def limited(cluster):
    return Limited(cluster)


def test_a_user_holds_no_more_than_their_quota_and_sees_why(limited):
    limited.worker(slots=8)
    limited.job(1)
    limited.quota("user-3", 2)
    for id in (1, 2, 3):
        limited.request(id)
    assert holds(limited.state) == {"1.t1.1", "1.t2.1"}
    assert limited.why(3) == "User 'ann' holds 2 of its 2 slots, and it needs 1 more; 6 are free in the pool."
    assert assigned(limited.ended(1)) == ["1.t3.1"]


def test_a_workspace_is_limited_whoever_asks(limited):
    limited.worker(slots=8)
    limited.quota("workspace-2", 3)
    limited.job(1, "ann", project=2)
    limited.job(2, "ben", project=2)
    limited.job(3, "ben", project=1)
    limited.request(1, slots=2, experiment=1)
    limited.request(2, slots=2, experiment=2)
    limited.request(3, slots=2, experiment=3)
    assert holds(limited.state) == {"1.t1.1", "1.t3.1"}
    assert "Workspace 'nlp' holds 2 of its 3 slots, and it needs 2 more; 4 are free" in limited.why(2)


def test_members_of_a_group_share_its_quota(limited):
    limited.worker(slots=8)
    limited.decisions_after(gateway.GroupSet(group_id=7, name="vision", members=(3, 4), reason="test"))
    limited.quota("group-7", 1)
    for id, name in ((1, "ann"), (2, "ben"), (3, "cleo")):
        limited.job(id, name)
        limited.request(id, experiment=id)
    assert holds(limited.state) == {"1.t1.1", "1.t3.1"}
    assert "Group 'vision' holds 1 of its 1 slot" in limited.why(2)
    # Who leaves the group is limited by it no longer.
    assert assigned(
        limited.decisions_after(gateway.GroupSet(group_id=7, name="vision", members=(3,), reason="t"))
    )


def test_what_somebody_did_under_a_former_name_counts(limited):
    limited.worker(slots=8)
    limited.quota("user-3", 1)
    limited.job(1, "ann")
    limited.request(1)
    limited.decisions_after(gateway.UserSet(user_id=3, username="anna", former=("ann",), reason="test"))
    limited.job(2, "anna")
    assert not assigned(limited.request(2, experiment=2))


def test_a_gang_is_let_in_whole_and_is_not_passed_by_small_ones(limited):
    limited.worker(slots=8)
    limited.quota("user-3", 4)
    for id in (1, 2, 3):
        limited.job(id)
    limited.request(1, slots=2, experiment=1)
    limited.request(2, slots=4, experiment=2)
    limited.request(3, slots=1, experiment=3)
    assert holds(limited.state) == {"1.t1.1"}
    assert limited.why(3) == (
        "User 'ann' holds 2 of its 4 slots, and the rest is kept for trial 2 of experiment 2, "
        "ahead in the queue; 6 are free in the pool."
    )
    assert assigned(limited.ended(1)) == ["1.t2.1"]
    assert assigned(limited.ended(2)) == ["1.t3.1"]


def test_what_can_never_start_keeps_nothing_from_others(limited):
    limited.worker(slots=4)
    limited.quota("user-3", 8)
    for id in (1, 2, 3):
        limited.job(id)
    limited.request(1, slots=16, experiment=1)
    limited.request(2, slots=8, experiment=2)
    limited.request(3, slots=4, experiment=3)
    assert holds(limited.state) == {"1.t3.1"}
    assert "user 'ann' may hold 8 slots at once: it waits until that quota is raised" in limited.why(1)
    assert "the whole pool has 4" in limited.why(2)


def test_a_pool_without_agents_keeps_no_quota_from_others(limited):
    limited.worker(slots=4)
    limited.cluster.pool("empty")
    limited.quota("user-3", 4)
    limited.job(1, pool="empty")
    limited.job(2)
    limited.request(1, slots=4, experiment=1)
    assert assigned(limited.request(2, slots=4, experiment=2)) == ["1.t2.1"]
    assert "No agent is connected" in limited.why(1)


def test_a_lower_quota_stops_nobody_and_lets_nobody_in(limited):
    limited.worker(slots=8)
    limited.job(1)
    for id in (1, 2, 3):
        limited.request(id)
    assert limited.quota("user-3", 1) == []
    assert limited.request(4) == []
    assert limited.ended(1)
    assert holds(limited.state) == {"1.t2.1", "1.t3.1"}
    assert not assigned(limited.ended(2))
    assert assigned(limited.ended(3)) == ["1.t4.1"]


def test_a_higher_quota_or_none_lets_in_at_once(limited):
    limited.worker(slots=8)
    limited.job(1)
    limited.quota("user-3", 1)
    for id in (1, 2, 3, 4):
        limited.request(id)
    assert assigned(limited.quota("user-3", 2)) == ["1.t2.1"]
    assert set(assigned(limited.quota("user-3", None))) == {"1.t3.1", "1.t4.1"}


def test_no_slot_at_all_may_be_the_quota(limited):
    limited.worker(slots=8)
    limited.quota("user-3", 0)
    limited.job(1)
    assert limited.request(1) == []
    assert "user 'ann' may hold 0 slots at once" in limited.why(1)
    # What needs no slot goes on: deletions of checkpoints, for one.
    assert assigned(limited.request(2, slots=0)) == ["1.t2.1"]


def test_another_pool_is_passed_when_slots_of_the_quota_come_free(limited):
    limited.worker("w1", 4)
    limited.worker("w2", 4, pool="b")
    limited.quota("user-3", 4)
    limited.job(1)
    limited.job(2, pool="b")
    limited.request(1, slots=4, experiment=1)
    limited.request(2, slots=4, experiment=2)
    assert holds(limited.state) == {"1.t1.1"}
    assert assigned(limited.ended(1)) == ["1.t2.1"]


def test_a_priority_does_not_get_around_a_quota(limited):
    limited.cluster.pool(scheduler="priority", preemption=True)
    limited.worker(slots=2)
    limited.quota("user-3", 1)
    limited.job(1, "ann", priority=50)
    limited.job(2, "ben", priority=50)
    limited.request(1, experiment=1)
    limited.request(2, experiment=2)
    limited.job(3, "ann", priority=1)
    assert limited.request(3, experiment=3) == []
    assert "User 'ann' holds 1 of its 1 slot" in limited.why(3)


def test_by_priority_the_most_urgent_is_let_in_first(limited):
    limited.cluster.pool(scheduler="priority")
    limited.worker(slots=8)
    limited.quota("user-3", 1)
    for id, priority in ((1, 50), (2, 50), (3, 10)):
        limited.job(id, priority=priority)
        limited.request(id, experiment=id)
    assert assigned(limited.ended(1)) == ["1.t3.1"]
    limited.cluster.rule(ChangeJob(experiment_id=2, priority=5, user="admin"))
    assert assigned(limited.ended(3)) == ["1.t2.1"]


@pytest.mark.parametrize("policy", ["fair_share", "round_robin"])
def test_jobs_share_a_quota_where_the_pool_shares(limited, policy):
    """The first to come does not have all of a workspace's slots until it is done."""
    limited.cluster.pool(scheduler=policy)
    limited.worker(slots=8)
    limited.quota("workspace-2", 4)
    limited.job(1, "ann", project=2)
    limited.job(2, "ben", project=2)
    for id in range(1, 9):
        limited.request(id, experiment=1)
    for id in range(11, 19):
        limited.request(id, experiment=2)
    for id in (1, 2, 3, 4):
        limited.ended(id)
    groups = [limited.state.allocations[id].experiment_id for id in holds(limited.state)]
    assert sorted(groups) == [1, 1, 2, 2]


def test_requests_of_all_sizes_count_for_a_jobs_share(limited):
    """A job that was given slots for a large request stands behind others with its small ones, too."""
    limited.cluster.pool(scheduler="fair_share")
    limited.worker(slots=8)
    limited.quota("workspace-2", 0)
    limited.job(1, "ann", project=2)
    limited.job(2, "ben", project=2)
    limited.request(1, slots=2, experiment=1)
    limited.request(2, experiment=1)
    limited.request(3, experiment=2)
    limited.request(4, experiment=2)
    limited.quota("workspace-2", 4)
    assert holds(limited.state) == {"1.t1.1", "1.t3.1", "1.t4.1"}


def test_what_is_beyond_a_quota_keeps_nothing_from_others(limited):
    limited.worker(slots=4)
    limited.quota("user-3", 2)
    limited.job(1)
    limited.job(2)
    limited.request(1, slots=3, experiment=1)
    limited.request(2, slots=2, experiment=2)
    assert holds(limited.state) == {"1.t2.1"}


def test_a_moved_experiment_counts_where_it_is(limited):
    limited.worker(slots=8)
    limited.quota("workspace-2", 1)
    limited.job(1, project=2)
    limited.job(2, project=2)
    limited.request(1, experiment=1)
    limited.request(2, experiment=2)
    assert assigned(limited.decisions_after(gateway.ExperimentMoved(1, 1, "test"))) == ["1.t2.1"]
    limited.job(3, "ben", project=2)
    limited.request(3, experiment=3)
    # A whole project moves, with what runs and what waits.
    moved = gateway.ProjectSet(project_id=2, workspace_id=1, name="p", owner="admin", reason="test")
    assert assigned(limited.decisions_after(moved)) == ["1.t3.1"]


def test_the_queue_shows_who_is_kept_out(limited):
    limited.worker(slots=8)
    limited.quota("user-3", 1)
    for id in (1, 2):
        limited.job(id)
        limited.request(id, slots=1, experiment=id)
    first, second = jobs(limited.state, Jobs())
    assert (first["state"], second["state"], second["slots_requested"]) == ("SCHEDULED", "QUEUED", 1)
    assert "User 'ann' holds 1 of its 1 slot" in second["waits_for"]
    assert [(pool["queued"], pool["scheduled"]) for pool in pools(limited.state, Pools())] == [(1, 1)]


def picture(state):
    state.index.gate.update_books()
    return {name: book.waiting for name, book in state.index.books.items()}


@pytest.mark.parametrize("seed", rest_in_full(range(20), 5))
def test_whatever_happens_no_quota_is_passed_and_a_rebuild_agrees(limited, seed):
    chance = random.Random(seed)
    limited.cluster.pool(scheduler=chance.choice(["fair_share", "priority", "round_robin"]), preemption=True)
    limited.cluster.pool("b")
    limited.worker("w1", 6)
    limited.worker("w2", 3, pool="b")
    trials = 0
    for id in range(1, 7):
        limited.job(
            id,
            chance.choice(["ann", "ben", "cleo"]),
            chance.choice([1, 2]),
            chance.choice(["", "b"]),
            priority=chance.choice([None, 10, 60]),
        )

    def quota():
        holder = chance.choice(["user-3", "user-4", "workspace-1", "workspace-2", "group-7"])
        return limited.quota(holder, chance.choice([None, 0, 1, 2, 4, 8]))

    def group():
        members = tuple(sorted(chance.sample([3, 4, 5], chance.randint(0, 3))))
        return limited.decisions_after(
            gateway.GroupSet(group_id=7, name="vision", members=members, reason="test")
        )

    def move():
        return limited.decisions_after(
            gateway.ExperimentMoved(chance.randint(1, 6), chance.choice([1, 2]), "test")
        )

    def ask():
        nonlocal trials
        trials += 1
        return limited.request(trials, chance.choice([1, 1, 2, 4]), experiment=chance.randint(1, 6))

    def end():
        running = [allocation for allocation in limited.state.allocations.values() if allocation.members]
        if not running:
            return []
        allocation = chance.choice(running)
        return limited.exited(allocation.trial_id, worker_id=allocation.members[0].worker_id)

    def change():
        change = {"priority": chance.randint(1, 99)}
        return limited.cluster.rule(ChangeJob(experiment_id=chance.randint(1, 6), user="admin", **change))

    for _ in range(80):
        events = chance.choice([quota, group, move, ask, ask, ask, end, end, change])()
        had = limits.usage_of(limited.state, limited.state.index.gate.usage)
        new = set(assigned(events))
        for id in new:
            account = limits.account_of(limited.state, limited.state.allocations[id].experiment_id)
            for holder in limits.limiting_holders(limited.state, account, "slots"):
                assert had[holder] <= limits.limit_of(limited.state, holder, "slots"), holder
        names = ("workers", "allocations", "jobs", "pools", "pauses", "homes", "project_homes", "people")
        names += ("people_names", "groups", "groups_of", "quotas")
        again = State(**{name: dict(getattr(limited.state, name)) for name in names})
        assert picture(again) == picture(limited.state)
        assert limits.usage_of(again, again.index.gate.usage) == had


@pytest.mark.parametrize("jobs", [1, 300], ids=["one job", "many jobs"])
@pytest.mark.parametrize(("quota", "slots"), [(1, 1), (1, 2), (2, 3), (2, 2)])
def test_what_it_takes_does_not_grow_with_what_waits(limited, quota, slots, jobs):
    """However many wait behind a quota, or could never start, a look goes through who is let in.

    One slot is held. So there is room for none, room that they could never use, or room that is kept for the
    first of them.
    """
    limited.worker(slots=4)
    limited.quota("user-3", quota)
    for job in range(1, jobs + 1):
        limited.job(job)
    limited.request(1, experiment=1)
    limited.request(2, slots=slots, experiment=min(2, jobs))
    limited.request(3, slots=slots, experiment=min(3, jobs))
    gate = limited.state.index.gate

    def cost():
        gate.mark_stale()
        with Meter().counting() as meter:
            gate.update_books()
        return meter.steps

    before = cost()
    for id in range(4, 300):
        limited.request(id, slots=slots, experiment=min(id, jobs))
    assert cost() == before > 0
