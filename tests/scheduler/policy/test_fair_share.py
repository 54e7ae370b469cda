"""What the scenarios of the scheduling spec leave open of fair shares (section 3)."""

import pytest

from services.scheduler.policy.book import book_of
from services.scheduler.policy.decide import decide
from services.scheduler.policy.offers import Offers, capacity_of
from services.scheduler.policy.records import (
    NOTHING,
    Agent,
    Decision,
    Group,
    Placement,
    PoolSettings,
    Request,
    Running,
    Share,
)


def waits(id, slots, *, group="g", **more):
    return Request(**{"allocation_id": id, "job_id": group, "group": group, "slots": slots, **more})


def runs(id, agent, slots, *, leaving=False, **more):
    return Running(waits(id, slots, **more), (Share(agent, slots),), leaving)


def pool_of(*, sizes=(4,), groups=None, running=(), waiting=()):
    return book_of(
        PoolSettings(type="fair_share"),
        agents=[Agent(id=f"a{n}", slots=slots) for n, slots in enumerate(sizes)],
        groups=groups or {"g": Group(registered=1), "h": Group(registered=2), "i": Group(registered=3)},
        running=running,
        waiting=waiting,
    )


def many(count, slots=1, *, group="g"):
    return [waits(f"{group}{n}", slots, group=group, requested_at=n) for n in range(count)]


def offers(book):
    return {claim.name: claim.offer for claim in Offers(book).claims}


def allocated(decision):
    return [p.allocation_id for p in decision.allocate]


def released(decision):
    return [r.allocation_id for r in decision.release]


def test_shares_go_by_weight_and_what_one_cannot_use_goes_on():
    groups = {"g": Group(weight=1), "h": Group(weight=3), "i": Group(weight=4)}
    requests = [*many(20), *many(20, group="h"), *many(2, group="i")]
    assert offers(pool_of(sizes=(16,), groups=groups, waiting=requests)) == {"g": 4, "h": 10, "i": 2}


CLOSED = [{"draining": True}, {"enabled": False}, {"enabled": False, "draining": True}]


@pytest.mark.parametrize("closed", CLOSED)
def test_of_an_agent_that_takes_nothing_new_counts_what_runs_there(closed):
    book = pool_of(sizes=(4, 4, 4), running=[runs("r", "a1", 3)])
    book.put_agent(Agent(id="a1", slots=4, **closed))
    book.put_agent(Agent(id="a2", slots=4, **closed))
    assert capacity_of(book) == 7


def test_what_runs_where_nothing_new_may_come_takes_nobodys_free_slot():
    for closed in (*CLOSED, None):
        book = pool_of(sizes=(1, 1), running=[runs("r", "a0", 1)], waiting=many(1, group="h"))
        if closed is None:
            book.drop_agent("a0")
        else:
            book.put_agent(Agent(id="a0", slots=1, **closed))
        assert decide(book) == Decision((Placement("h0", (Share("a1", 1),)),)), closed


def test_nobody_is_asked_to_leave_slots_that_nobody_else_may_have():
    running = [runs(f"r{n}", f"a{n}", 1, requested_at=n) for n in range(2)]
    book = pool_of(sizes=(1, 1), running=running, waiting=many(2, group="h"))
    book.put_agent(Agent(id="a0", slots=1, enabled=False, draining=True))
    assert released(decide(book)) == ["r1"]


def test_zero_slot_tasks_take_part_in_nothing():
    book = pool_of(running=[runs("r", "a0", 4)], waiting=[*many(3, 0), *many(4, group="h")])
    book.put_agent(Agent(id="a0", slots=4, max_zero_slot=2))
    assert offers(book) == {"g": 2, "h": 2}
    assert allocated(decide(book)) == ["g0", "g1"]


def test_no_slot_is_given_twice():
    waiting = [*many(1, 3), *many(1, 3, group="h"), *many(1, 2, group="i")]
    decision = decide(pool_of(sizes=(4, 4), waiting=waiting))
    assert len(allocated(decision)) == len({p.shares[0].agent_id for p in decision.allocate}) == 2


def test_a_group_that_is_stuck_keeps_what_it_runs():
    running = [runs(f"r{n}", "a0", 1) for n in range(4)]
    book = pool_of(sizes=(8,), running=running, waiting=[waits("big", 8), *many(8, group="h")])
    decision = decide(book)
    assert released(decision) == []
    assert allocated(decision) == ["h0", "h1", "h2", "h3"]


def test_a_later_group_gets_its_share_from_those_that_have_more():
    running = [runs(f"r{n}", "a0", 1, requested_at=n) for n in range(4)]
    book = pool_of(running=running, waiting=many(4, group="h"))
    assert released(decide(book)) == ["r0", "r1"]
    assert allocated(decide(book)) == []


def test_those_asked_to_leave_are_not_asked_again_nor_others_in_their_place():
    running = [runs(f"r{n}", "a0", 1, requested_at=n, leaving=n in (0, 3)) for n in range(4)]
    assert decide(pool_of(running=running, waiting=many(4, group="h"))) == NOTHING
    running[3] = runs("r3", "a0", 1, requested_at=3)
    assert released(decide(pool_of(running=running, waiting=many(4, group="h")))) == ["r1"]


def test_what_cannot_be_asked_back_counts_against_the_share():
    running = [runs(f"r{n}", "a0", 1, preemptible=False) for n in range(3)]
    book = pool_of(running=running, waiting=[*many(3), *many(3, group="h")])
    assert offers(book) == {"g": 3, "h": 1}
    assert allocated(decide(book)) == ["h0"]


def test_a_request_of_a_job_at_its_limit_keeps_the_idle_pass_valid():
    groups = {"g": Group(max_slots=2)}
    book = pool_of(groups=groups, waiting=many(5))
    for placement in decide(book).allocate:
        book.run(book.waiting[placement.allocation_id], placement.shares)
    assert decide(book) == NOTHING
    book.wait(waits("more", 1))
    assert book.idle_pass.is_valid()
    book.put_group("g", Group(max_slots=3))
    assert not book.idle_pass.is_valid()
    assert len(allocated(decide(book))) == 1


def test_a_small_request_passes_a_large_one_of_its_job():
    assert allocated(decide(pool_of(sizes=(2, 2), waiting=[waits("big", 3), waits("small", 1)]))) == ["small"]


def test_groups_without_weight_share_one_by_one():
    groups = {"g": Group(weight=0, registered=1), "h": Group(weight=0, registered=2)}
    assert offers(pool_of(sizes=(5,), groups=groups, waiting=[*many(9), *many(9, group="h")])) == {
        "g": 3,
        "h": 2,
    }
