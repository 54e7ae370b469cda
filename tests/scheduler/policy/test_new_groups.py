"""Groups that come to a full fair-share pool: mostly they change nothing, and then no pass is run over it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.scheduler.policy.book import book_of
from services.scheduler.policy.decide import decide
from services.scheduler.policy.explain import explain
from services.scheduler.policy.offers import Offers, offers_of
from services.scheduler.policy.records import NOTHING, Agent, Group, PoolSettings, Request

FAIR = PoolSettings(type="fair_share")


def a_request(number, group, slots):
    return Request(
        allocation_id=f"r{number}", job_id=group, group=group, slots=slots, requested_at=float(number)
    )


def full_pool(requests, groups=None, slots=(2,)):
    """A pool that was filled until there was nothing to do; what is released is given back at once."""
    agents = [Agent(id=f"n{number}", slots=each) for number, each in enumerate(slots)]
    book = book_of(FAIR, agents=agents, groups=groups or {}, waiting=requests)
    for _ in range(30):
        decision = decide(book)
        if decision == NOTHING:
            break
        for placement in decision.allocate:
            book.run(book.waiting[placement.allocation_id], placement.shares)
        for release in decision.release:
            book.wait(book.running[release.allocation_id].request)
    return book


def afresh(book):
    """The same pool, of which nothing is remembered."""
    return book_of(
        book.settings,
        agents=book.agents.values(),
        groups=book.groups,
        running=book.running.values(),
        waiting=book.waiting.values(),
    )


def offered(offers):
    return [(claim.name, claim.offer, claim.active) for claim in offers.claims if claim.offer]


def come(book, number, group, slots, registered):
    """One more group; whether no pass has to be run for it."""
    book.put_group(group, Group(registered=registered))
    book.wait(a_request(number, group, slots))
    return book.idle_pass.is_valid()


@pytest.mark.parametrize("slots", [1, 2, 9])
def test_who_comes_behind_groups_that_got_one_slot_each_changes_nothing(slots):
    book = full_pool([a_request(n, f"g{n}", 1) for n in range(6)], {f"g{n}": Group() for n in range(6)})
    assert come(book, 10, "new", slots, registered=1.0)
    assert decide(book) == NOTHING == decide(afresh(book))


def test_who_comes_first_gets_a_turn():
    groups = {f"g{n}": Group(registered=5.0) for n in range(6)}
    book = full_pool([a_request(n, f"g{n}", 1) for n in range(6)], groups)
    assert not come(book, 10, "older", 1, registered=1.0)
    assert decide(book) == decide(afresh(book)) != NOTHING


def test_where_groups_got_more_than_one_slot_at_once_they_may_have_to_give_some_back():
    book = full_pool([a_request(n, "g", 1) for n in range(6)], slots=(4,))
    assert not come(book, 10, "new", 1, registered=1.0)
    assert decide(book) == decide(afresh(book)) != NOTHING


def test_who_comes_where_slots_are_free_gets_them():
    book = full_pool([a_request(1, "g", 1)])
    assert not come(book, 10, "new", 1, registered=1.0)
    assert len(decide(book).allocate) == 1


@pytest.mark.parametrize(
    ("weight", "registered", "changes_nothing"),
    [(1, 2.0, True), (1, 0.5, False), (0.1, 2.0, False), (1e300, 2.0, False)],
)
def test_where_slots_were_given_back_only_the_youngest_changes_nothing(weight, registered, changes_nothing):
    """The second group cannot use its one slot, so that the first gets both."""
    groups = {"a": Group(weight=weight), "b": Group(registered=1.0)}
    book = full_pool([a_request(1, "a", 2), a_request(2, "b", 2)], groups)
    assert [*book.running] == ["r1"]
    assert come(book, 10, "new", 2, registered=registered) == changes_nothing
    assert decide(book) == decide(afresh(book))


def test_where_slots_are_left_over_after_all_gave_back_the_youngest_may_want_them():
    """The first group gets the slots of the others, which leaves one that none of them can use."""
    names = "abcd"
    groups = {name: Group(registered=float(n)) for n, name in enumerate(names)}
    book = full_pool([a_request(n, name, 3) for n, name in enumerate(names)], groups, slots=(4,))
    assert [*book.running] == ["r0"]
    assert come(book, 10, "new", 3, registered=4.0)
    assert not come(book, 11, "new", 1, registered=4.0)
    assert decide(book) == decide(afresh(book)) != NOTHING


# As in a configuration, 3 is no float.
WEIGHTS = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3, 0.3)
GROUPS = st.lists(
    st.tuples(
        st.lists(st.sampled_from((0, 1, 1, 1, 1, 2, 4)), max_size=3),
        st.sampled_from(WEIGHTS),
        st.sampled_from((None, None, None, 1, 3)),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=9,
)
AGENTS = st.lists(st.integers(0, 4), min_size=1, max_size=3)


@given(GROUPS, AGENTS, GROUPS)
@settings(max_examples=200, deadline=None)
def test_a_pass_that_is_skipped_would_have_decided_and_offered_the_same(first, agents, more):
    groups, requests = of_drawn(first, 0)
    book = full_pool(requests, groups, agents)
    new_groups, new_requests = of_drawn(more, 100)
    for name, group in new_groups.items():
        book.put_group(name, group)
        for request in (new_request for new_request in new_requests if new_request.group == name):
            book.wait(request)
        fresh = afresh(book)
        decision = decide(book)
        assert decision == decide(fresh)
        assert offered(offers_of(book)) == offered(Offers(fresh))
        for request in book.waiting.values():
            explanation = explain(book, request.allocation_id, decision)
            assert explanation == explain(fresh, request.allocation_id, decision)


def of_drawn(drawn, start):
    groups, requests = {}, []
    for number, (sizes, weight, limit, registered) in enumerate(drawn, start):
        groups[f"g{number}"] = Group(weight=weight, max_slots=limit, registered=registered)
        requests += [a_request(f"{number}{at}", f"g{number}", slots) for at, slots in enumerate(sizes)]
    return groups, requests
