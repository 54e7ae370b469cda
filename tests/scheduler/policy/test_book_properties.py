"""What holds for every pass over every book, on small random clusters."""

from collections import Counter
from copy import deepcopy
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.scheduler.policy.book import Book, book_of, group_headroom
from services.scheduler.policy.decide import decide
from services.scheduler.policy.explain import explain
from services.scheduler.policy.fitting import Pool
from services.scheduler.policy.offers import Offers
from services.scheduler.policy.records import (
    NOTHING,
    Agent,
    Decision,
    Group,
    PoolSettings,
    Request,
    Running,
    Share,
)

GROUPS = ("a", "b", "c")
TYPES = ("fair_share", "priority", "round_robin")
DRAINING = {"enabled": False, "draining": True}
"""As the scheduler says it."""
SWITCHES = [{}] * 8 + [DRAINING, {"enabled": False}]


# Made once: a strategy that is made for each draw is also checked for each draw, a quarter of the time.
FLAG = st.booleans()
NAMES = st.lists(st.sampled_from(GROUPS), max_size=8)
SLOTS = st.lists(st.integers(0, 4), min_size=1, max_size=4)
SWITCH = st.sampled_from(SWITCHES)
POSITION = st.integers(0, 3)
TIME = st.integers(0, 9)
IN_FIVE = st.integers(0, 4)
PRIORITY = st.sampled_from((1, 42, 99))
LIMIT = st.sampled_from((None, None, 3))
WEIGHT = st.sampled_from((0.5, 1, 3))
FITTING = st.sampled_from(("best", "worst"))


@st.composite
def requests(draw, prefix, sizes):
    size = st.sampled_from(sizes)
    return [
        Request(
            allocation_id=f"{prefix}{number}",
            job_id=group,
            group=group,
            slots=draw(size),
            preemptible=draw(FLAG),
            single_agent=draw(FLAG),
            position=Decimal(draw(POSITION)),
            requested_at=draw(TIME),
        )
        for number, group in enumerate(draw(NAMES))
    ]


RUNNING = requests("r", (0, 1, 2))
WAITING = requests("w", (0, 1, 1, 2, 3, 4, 8))
NEW = requests("new", (0, 1, 2, 4))


class Parts:
    """What a book is made of, in one order or another."""

    def __init__(self, agents, groups, running, waiting, settings):
        self.agents, self.groups, self.running = agents, groups, running
        self.waiting, self.settings = waiting, settings

    def fresh(self):
        return book_of(
            self.settings,
            agents=self.agents,
            groups=self.groups,
            running=self.running,
            waiting=self.waiting,
        )

    def __repr__(self):
        return f"{self.agents} {self.groups} {self.running} {self.waiting} {self.settings}"


@st.composite
def clusters(draw, types=TYPES, leaving=True):
    agents = [
        Agent(id=f"n{number}", slots=slots, max_zero_slot=2, **draw(SWITCH))
        for number, slots in enumerate(draw(SLOTS))
    ]
    free = {agent.id: [agent.slots, 2] for agent in agents}
    running, host = [], st.sampled_from(sorted(free))
    for request in draw(RUNNING):
        name = draw(host)
        if free[name][0] >= request.slots and (request.slots or free[name][1]):
            free[name][0] -= request.slots
            free[name][1] -= request.slots == 0
            gone = leaving and draw(IN_FIVE) == 0
            running.append(Running(request, (Share(name, request.slots),), gone))
    groups = {
        name: Group(
            priority=draw(PRIORITY),
            max_slots=draw(LIMIT),
            weight=draw(WEIGHT),
            registered=draw(POSITION),
        )
        for name in GROUPS
    }
    settings = PoolSettings(
        type=draw(st.sampled_from(types)),
        preemption=draw(FLAG),
        allow_heterogeneous_fits=draw(FLAG),
        fitting_policy=draw(FITTING),
    )
    return Parts(agents, groups, running, draw(WAITING), settings)


@given(clusters(), st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_a_book_changed_piece_by_piece_decides_as_a_fresh_one(parts, random):
    book = Book(PoolSettings(type=random.choice(TYPES), default_priority=random.choice((1, 42))))
    changes = [lambda: setattr(book, "settings", parts.settings)]
    changes += [lambda agent=agent: book.put_agent(agent) for agent in parts.agents]
    changes += [lambda item=item: book.put_group(*item) for item in parts.groups.items()]
    changes += [lambda r=r: book.run(r.request, r.shares, leaving=r.leaving) for r in parts.running]
    changes += [lambda r=r: book.wait(r) for r in parts.waiting]
    everything = [r.request for r in parts.running] + parts.waiting
    detours = [lambda: decide(book)] * 4
    detours += [lambda id=agent.id: book.drop_agent(id) for agent in parts.agents]
    detours += [lambda name=name: book.drop_group(name) for name in GROUPS]
    detours += [lambda name=name: book.put_group(name, Group(priority=7)) for name in GROUPS]
    detours += [lambda r=r: book.leave(r.allocation_id) for r in everything]
    detours += [lambda r=r: book.run(r, (Share("n0", r.slots),)) for r in everything]
    detours += [lambda r=r: book.wait(r) for r in everything]
    random.shuffle(detours)
    for detour in detours[: random.randint(0, 30)]:
        detour()
        random.choice(changes)()
    random.shuffle(changes)
    for change in changes:
        change()
        if random.random() < 0.3:
            decide(book)
    assert decide(book) == decide(parts.fresh())


@given(clusters(), st.data())
@settings(max_examples=150)
def test_what_is_remembered_of_a_quiet_pass_hides_nothing(parts, data):
    book = parts.fresh()
    for _ in range(10):
        decision = decide(book)
        if decision == NOTHING:
            break
        apply(book, decision)
    number = 0
    for number, request in enumerate(data.draw(NEW)):
        book.wait(request)
        fresh = book_of(
            book.settings,
            agents=parts.agents,
            groups=parts.groups,
            running=book.running.values(),
            waiting=book.waiting.values(),
        )
        assert decide(book) == decide(fresh), number


def apply(book, decision):
    for placement in decision.allocate:
        book.run(book.waiting[placement.allocation_id], placement.shares, backfilled=placement.backfilled)
    for release in decision.release:
        running = book.running[release.allocation_id]
        book.run(running.request, running.shares, leaving=True, backfilled=running.backfilled)


@given(clusters())
def test_slots_are_given_once_and_requests_served_whole(parts):
    book = parts.fresh()
    decision = decide(book)
    for placement in decision.allocate:
        request = book.waiting[placement.allocation_id]
        assert sum(share.slots for share in placement.shares) == request.slots
        assert len(placement.shares) == 1 or not request.single_agent
    apply(book, decision)
    for agent in parts.agents:
        used = book.used.get(agent.id, (0, 0))
        assert used[0] <= agent.slots
        assert used[1] <= 2


@given(clusters(types=("fair_share",), leaving=False))
@settings(max_examples=300)
def test_who_fits_beside_fair_shares_waits_only_for_another_whose_share_the_slots_are(parts):
    parts.waiting = [request for request in parts.waiting if request.slots]
    book = parts.fresh()
    for _ in range(30):
        decision = decide(book)
        apply(book, decision)
        # Whoever is asked to leave does so at once, and asks for nothing more.
        for running in list(book.leaving.values()):
            book.leave(running.request.allocation_id)
        if decision == NOTHING:
            break
    claims = Offers(book).claims
    open_offers = {c.name: c.offer - c.active for c in claims if c.offer > c.active}
    for request in book.waiting.values():
        room = group_headroom(book, request.group)
        if book.pool.fits(request) and (room is None or request.slots <= room):
            others = sum(spare for name, spare in open_offers.items() if name != request.group)
            free = sum(shape.empty for shape in book.pool._shape_of.values())
            assert others > free - request.slots, f"{request} waits beside {free} free slots"


@given(clusters(types=("priority",)))
def test_only_those_behind_yield_and_only_if_they_may(parts):
    book = parts.fresh()
    for release in decide(book).release:
        running, wanted = book.running[release.allocation_id], book.waiting[release.wanted_by]
        victim = running.request
        assert victim.preemptible
        assert not running.leaving
        assert book.settings.preemption
        levels = (book.priority(wanted.group), book.priority(victim.group))
        assert levels[0] < levels[1] or (levels[0] == levels[1] and wanted.position < victim.position)


@given(clusters(types=[t for t in TYPES if t != "round_robin"]))
def test_no_group_gets_beyond_its_limit(parts):
    book = parts.fresh()
    held = Counter()
    for running in parts.running:
        held[running.request.group] += running.request.slots
    for placement in decide(book).allocate:
        request = book.waiting[placement.allocation_id]
        held[request.group] += request.slots
        limit = parts.groups[request.group].max_slots
        assert request.slots == 0 or limit is None or held[request.group] <= limit


@given(clusters())
@settings(max_examples=150)
def test_a_pass_leaves_the_book_as_it_is_and_says_the_same_twice(parts):
    book = parts.fresh()
    before = deepcopy((book.pool, book.used, book.levels, list(book.waiting), list(book.running)))
    decision = decide(book)
    pool, *rest = before
    assert (book.used, book.levels, list(book.waiting), list(book.running)) == tuple(rest)
    assert vars(book.pool) == vars(pool)
    assert decide(book) == decision


@given(clusters(leaving=False))
@settings(max_examples=200)
def test_those_asked_to_leave_are_enough_while_they_leave(parts):
    book = parts.fresh()
    decision = decide(book)
    apply(book, Decision(release=decision.release))
    assert decide(book).release == ()


@given(clusters(types=("priority",), leaving=False))
@settings(max_examples=150)
def test_nobody_gets_more_victims_while_the_first_ones_leave(parts):
    book = parts.fresh()
    decision = decide(book)
    apply(book, decision)
    served = {release.wanted_by for release in decision.release}
    assert not served & {release.wanted_by for release in decide(book).release}


@given(clusters(leaving=False))
@settings(max_examples=200)
def test_passes_come_to_rest_when_those_asked_to_leave_queue_again(parts):
    book = parts.fresh()
    for _ in range(30):
        decision = decide(book)
        if decision == NOTHING:
            return
        apply(book, decision)
        for running in list(book.leaving.values()):
            book.wait(running.request)
    raise AssertionError(f"still {decision}")


@given(clusters())
def test_every_wait_has_a_reason(parts):
    book = parts.fresh()
    decision = decide(book)
    for request in parts.waiting:
        assert explain(book, request.allocation_id, decision).endswith(".")


@given(clusters())
@settings(max_examples=150)
def test_whether_a_request_fits_and_where_agree(parts):
    book = parts.fresh()
    for request in parts.waiting:
        assert book.pool.fits(request) == (book.pool.fit(request) is not None)
    assert isinstance(book.pool, Pool)


def test_an_unknown_request_leaves_without_a_word():
    book = Book()
    book.leave("nobody")
    book.drop_agent("nowhere")
    book.drop_group("none")
    assert not book.waiting
    assert not book.running


@pytest.mark.parametrize("closed", [{"enabled": False}, {"draining": True}])
@pytest.mark.parametrize("slots", [0, 1, 4])
def test_a_closed_agent_gets_nothing(closed, slots):
    book = Book(PoolSettings(type="priority"))
    book.put_agent(Agent(id="a", slots=4, **closed))
    book.wait(Request(allocation_id="x", job_id="g", group="g", slots=slots))
    assert decide(book) == NOTHING
    book.put_agent(Agent(id="a", slots=4))
    assert len(decide(book).allocate) == 1


def test_runs_on_an_agent_that_went_count_again_when_it_is_back():
    book = book_of(PoolSettings(type="priority"), agents=[Agent(id="a", slots=2)])
    request = Request(allocation_id="x", job_id="g", group="g", slots=2)
    book.run(request, (Share("a", 2),))
    book.drop_agent("a")
    book.wait(Request(allocation_id="y", job_id="g", group="g", slots=1))
    assert decide(book) == NOTHING
    book.put_agent(Agent(id="a", slots=2))
    assert decide(book) == NOTHING
    book.leave("x")
    assert [p.allocation_id for p in decide(book).allocate] == ["y"]
