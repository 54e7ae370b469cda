"""What the scenario of the scheduling spec leaves open of turns (section 5)."""

from services.scheduler.policy.book import book_of
from services.scheduler.policy.decide import decide
from services.scheduler.policy.records import NOTHING, Agent, Group, PoolSettings, Request, Running, Share

GROUPS = {"g": Group(registered=1), "h": Group(registered=2)}


def waits(id, slots, *, group="g", **more):
    return Request(**{"allocation_id": id, "job_id": group, "group": group, "slots": slots, **more})


def pool_of(waiting, *, running=(), groups=None, sizes=(4,)):
    return book_of(
        PoolSettings(type="round_robin", preemption=True),
        agents=[Agent(id=f"a{n}", slots=slots) for n, slots in enumerate(sizes)],
        groups=groups or GROUPS,
        running=running,
        waiting=waiting,
    )


def allocated(book):
    decision = decide(book)
    assert decision.release == ()
    return [p.allocation_id for p in decision.allocate]


def many(count, slots=1, *, group="g"):
    return [waits(f"{group}{n}", slots, group=group, requested_at=n) for n in range(count)]


def test_groups_take_turns_the_older_one_first():
    assert allocated(pool_of([*many(3), *many(3, group="h")])) == ["g0", "h0", "g1", "h1"]


def test_who_holds_least_begins():
    running = [Running(waits("r", 1), (Share("a0", 1),))]
    assert allocated(pool_of([*many(3), *many(3, group="h")], running=running)) == ["h0", "g0", "h1"]


def test_a_group_whose_next_one_does_not_fit_is_out_for_this_pass():
    waiting = [waits("big", 8, requested_at=-1), *many(3), *many(2, group="h")]
    assert allocated(pool_of(waiting)) == ["h0", "h1"]


def test_limits_and_weights_do_not_matter():
    groups = {"g": Group(registered=1, max_slots=1, weight=0), "h": Group(registered=2, weight=9)}
    assert allocated(pool_of([*many(3), *many(3, group="h")], groups=groups)) == ["g0", "h0", "g1", "h1"]


def test_a_request_behind_one_that_does_not_fit_keeps_the_idle_pass_valid():
    book = pool_of([waits("big", 8)])
    assert decide(book) == NOTHING
    book.wait(waits("small", 1, requested_at=1))
    assert book.idle_pass.is_valid()
    book.wait(waits("first", 1, requested_at=-1))
    assert allocated(book) == ["first"]


def test_a_job_without_requests_keeps_the_idle_pass_valid():
    book = pool_of([waits("big", 8)])
    assert decide(book) == NOTHING
    book.put_group("new", Group(registered=9))
    assert book.idle_pass.is_valid()
    book.drop_group("new")
    assert book.idle_pass.is_valid()
    book.put_group("g", Group(priority=1))
    assert not book.idle_pass.is_valid()
