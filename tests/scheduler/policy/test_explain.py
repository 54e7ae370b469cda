"""One sentence per reason to wait."""

import pytest

from services.scheduler.policy.book import Book, book_of
from services.scheduler.policy.explain import explain, explain_never_fits
from services.scheduler.policy.records import Agent, Group, PoolSettings, Request, Running, Share


def waits(id, slots, *, group="g", **more):
    return Request(allocation_id=id, job_id=group, group=group, slots=slots, **more)


def runs(id, agent, slots, *, group="g"):
    return Running(waits(id, slots, group=group), (Share(agent, slots),))


def why(id, waiting, *, agents, running=(), groups=None, **settings):
    settings = PoolSettings(**{"type": "priority", **settings})
    book = book_of(settings, agents=agents, groups=groups, waiting=waiting, running=running)
    return explain(book, id)


IDLE = Agent(id="a", slots=4)
HIGH = {"high": Group(priority=1), "g": Group(priority=50)}


def test_placed():
    assert "about to start" in why("x", [waits("x", 1)], agents=[IDLE])


def test_no_agent():
    assert "No agent is connected" in why("x", [waits("x", 1)], agents=[])


def test_all_agents_closed():
    agents = [Agent(id="a", slots=4, enabled=False), Agent(id="b", slots=4, draining=True)]
    assert "disabled, draining or out of reach" in why("x", [waits("x", 1)], agents=agents)


def test_at_its_limit():
    sentence = why(
        "x",
        [waits("x", 2)],
        agents=[Agent(id="a", slots=4)],
        running=[runs("r", "a", 2)],
        groups={"g": Group(max_slots=3)},
    )
    assert sentence == "Its job may hold 3 slots at once (resources.max_slots) and holds 2; it needs 2."


def test_larger_than_the_pool():
    assert why("x", [waits("x", 12)], agents=[IDLE]) == (
        "It needs 12 slots, the whole pool has 4. What would fit: up to 4 slots."
    )


def test_not_made_of_whole_agents():
    sentence = why("x", [waits("x", 6)], agents=[IDLE, Agent(id="b", slots=4)])
    assert "cannot be made of these (sizes 4, 4)" in sentence
    assert sentence.endswith("What would fit: up to 4 slots or a multiple of 4 up to 8.")


@pytest.mark.parametrize(
    ("sizes", "fits"),
    [
        ([1, 1], "up to 2 slots"),
        ([1] * 6 + [4], "up to 6 slots"),
        ([1, 1, 4, 4], "up to 4 slots or a multiple of 4 up to 8"),
        ([2, 2, 8], "up to 8 slots"),
        ([2, 2, 2, 2, 2, 8], "up to 8 slots or a multiple of 2 up to 10"),
    ],
)
def test_what_would_fit_names_each_size_once(sizes: list[int], fits: str):
    agents = [Agent(id=f"a{i}", slots=size) for i, size in enumerate(sizes)]
    assert why("x", [waits("x", 64)], agents=agents).endswith(f"What would fit: {fits}.")


def test_too_large_for_one_agent():
    sentence = why("x", [waits("x", 6, single_agent=True)], agents=[IDLE, Agent(id="b", slots=4)])
    assert (
        sentence == "It needs 6 slots on one agent, the largest agent has 4. What would fit: up to 4 slots."
    )


def test_no_zero_slot_tasks_here():
    agents = [Agent(id="a", slots=1, max_zero_slot=0)]
    assert "takes tasks without slots" in why("x", [waits("x", 0)], agents=agents)


def test_all_zero_slot_places_taken():
    agents = [Agent(id="a", slots=1, max_zero_slot=1)]
    sentence = why("x", [waits("x", 0)], agents=agents, running=[runs("r", "a", 0)])
    assert "its maximum number of tasks without slots" in sentence


def test_waits_for_those_asked_to_leave():
    sentence = why(
        "x",
        [waits("x", 4, group="high")],
        agents=[IDLE],
        running=[runs("low", "a", 4)],
        groups=HIGH,
        preemption=True,
    )
    assert sentence.startswith("It waits for low to exit")


def test_slots_are_taken():
    assert why("x", [waits("x", 2)], agents=[IDLE], running=[runs("r", "a", 4)]) == (
        "It needs 2 slots, 0 of 4 are free."
    )


def test_slots_are_free_but_scattered():
    agents = [Agent(id="a", slots=4), Agent(id="b", slots=4)]
    sentence = why("x", [waits("x", 4)], agents=agents, running=[runs("r", "a", 2), runs("s", "b", 2)])
    assert sentence.endswith("4 of 8 are free, at most 2 on one agent.")


def test_slots_are_on_their_way():
    running = [runs("r", "a", 4), runs("s", "b", 4)]
    running[1] = Running(running[1].request, running[1].shares, leaving=True)
    agents = [IDLE, Agent(id="b", slots=4)]
    sentence = why("x", [waits("x", 3)], agents=agents, running=running)
    assert sentence == "It needs 3 slots, 0 of 8 are free; s was asked to leave."


def test_behind_a_blocked_one_of_higher_priority():
    waiting = [waits("big", 4, group="high"), waits("x", 1)]
    agents = [Agent(id="a", slots=4)]
    sentence = why("x", waiting, agents=agents, running=[runs("r", "a", 2, group="high")], groups=HIGH)
    assert sentence == "It waits behind big (priority 1, needs 4 slots), which does not fit yet."


def test_others_ahead_take_the_free_slots():
    waiting = [waits("first", 3, submitted_at=1), waits("x", 2, submitted_at=2)]
    assert why("x", waiting, agents=[IDLE]) == "The free slots go to first, ahead in the queue."


def test_a_limit_of_others_is_no_reason():
    waiting = [
        waits("capped", 4, group="high", submitted_at=1),
        waits("first", 4, submitted_at=2),
        waits("x", 1, submitted_at=3),
    ]
    groups = {"high": Group(priority=1, max_slots=1), "g": Group(priority=50)}
    sentence = why("x", waiting, agents=[IDLE], groups=groups)
    assert sentence == "The free slots go to first, ahead in the queue."


def test_beyond_its_fair_share():
    groups = {"g": Group(registered=2), "h": Group(registered=1)}
    waiting = [waits("x", 1), waits("y", 1, group="h")]
    running = [runs(f"r{i}", "a", 1) for i in range(2)]
    agents = [Agent(id="a", slots=3)]
    sentence = why("x", waiting, agents=agents, running=running, groups=groups, type="fair_share")
    assert sentence == (
        "It needs 1 more: the fair share of its experiment is 2 of 3 slots at present, "
        "and its experiment holds 2."
    )


@pytest.mark.parametrize(
    ("held", "others"),
    [
        ({"h": 3}, "h-0 and 2 more (3)"),
        ({"h": 1, "i": 2}, "i-0 and 1 more (2); h-0 (1)"),
        ({"g": 3, "h": 1, "i": 1, "j": 1}, "h-0 (1); i-0 (1); j-0 (1)"),
        (dict.fromkeys("ghijklm", 1), "h-0 (1); i-0 (1); j-0 (1); and 3 more"),
    ],
)
def test_those_who_hold_the_slots_beyond_its_share_are_named(held, others):
    running = [
        runs(f"{group}-{at}", "a", 1, group=group) for group, count in held.items() for at in range(count)
    ]
    agents = [Agent(id="a", slots=len(running))]
    groups = {group: Group(registered=at) for at, group in enumerate(held)} | {"g": Group(registered=99)}
    sentence = why(
        "x", [waits("x", len(running))], agents=agents, running=running, groups=groups, type="fair_share"
    )
    assert sentence.endswith(f"holds {held.get('g', 0)}. Others hold slots: {others}.")


def test_its_fair_share_is_free_when_others_have_left():
    groups = {"g": Group(registered=2), "h": Group(registered=1)}
    running = [runs(f"r{i}", "a", 1) for i in range(4)]
    waiting = [waits("y", 2, group="h")]
    sentence = why("y", waiting, agents=[IDLE], running=running, groups=groups, type="fair_share")
    assert sentence == "It needs 2 slots, 0 of 4 are free; r0, r1 were asked to leave."


def test_in_turns_only_the_own_job_has_an_order_and_no_limit():
    waiting = [waits("big", 8, submitted_at=1), waits("x", 1, submitted_at=2)]
    agents = [IDLE, Agent(id="b", slots=4)]
    groups = {"g": Group(max_slots=0)}
    sentence = why(
        "x", waiting, agents=agents, running=[runs("r", "b", 2)], groups=groups, type="round_robin"
    )
    assert sentence == "It waits behind big (needs 8 slots), which does not fit yet."


@pytest.mark.parametrize("type", ["fair_share", "round_robin"])
def test_the_slots_go_to_another_job_in_this_pass(type):
    groups = {"g": Group(registered=2, weight=9), "h": Group(registered=1)}
    waiting = [waits("x", 3), waits("other", 2, group="h", single_agent=True)]
    agents = [IDLE, Agent(id="b", slots=2)]
    running = [runs("r", "b", 1, group="h")]
    if type == "round_robin":
        running = [runs("r", "b", 1)]
    sentence = why("x", waiting, agents=agents, running=running, groups=groups, type=type)
    assert sentence == "The free slots go to other in this pass."


def test_unknown_id():
    with pytest.raises(KeyError, match=r"9\.1"):
        why("9.1", [waits("x", 1)], agents=[IDLE])


def test_what_can_never_fit_is_known_before_anything_waits():
    agents = [Agent(id="a", slots=8, enabled=False), Agent(id="b", slots=8, draining=True)]
    book = book_of(PoolSettings(), agents=agents)
    assert (
        explain_never_fits(book, slots=8)
        == explain_never_fits(book, slots=16)
        == explain_never_fits(book, slots=0)
        == ""
    )
    assert "What would fit: up to 8 slots or a multiple of 8 up to 16." in explain_never_fits(book, slots=12)
    assert explain_never_fits(book, slots=16, single_agent=True) == (
        "It needs 16 slots on one agent, the largest agent has 8. What would fit: up to 8 slots."
    )


def test_of_a_pool_without_agents_nothing_is_known():
    assert explain_never_fits(Book(), slots=1) == "No agent is connected to the resource pool."
    assert "no slots at all" in explain_never_fits(
        book_of(PoolSettings(), agents=[Agent(id="a", slots=0)]), slots=1
    )
