"""What the scenarios of the scheduling spec leave open of the priority scheduler (section 4)."""

from decimal import Decimal

import pytest

from services.scheduler.policy.book import book_of
from services.scheduler.policy.decide import decide
from services.scheduler.policy.fitting import Pool
from services.scheduler.policy.records import Agent, Group, PoolSettings, Request, Running, Share


def waits(id, slots, *, group="g", **more):
    return Request(**{"allocation_id": id, "job_id": group, "group": group, "slots": slots, **more})


def runs(id, agent, slots, **more):
    return Running(waits(id, slots, **more), (Share(agent, slots),))


def pool(waiting, *, running=(), agents=None, groups=None, **settings):
    return book_of(
        PoolSettings(type="priority", **settings),
        agents=agents or [Agent(id="a", slots=4)],
        groups=groups,
        waiting=waiting,
        running=running,
    )


def allocated(decision):
    return [p.allocation_id for p in decision.allocate]


def test_the_order_inside_a_level_is_position_then_age_of_job_then_own_age_then_id():
    waiting = [
        waits("e", 1, position=Decimal(2)),
        waits("d", 1, position=Decimal(1), submitted_at=2),
        waits("c", 1, position=Decimal(1), submitted_at=1, requested_at=2),
        waits("b", 1, position=Decimal(1), submitted_at=1, requested_at=1),
        waits("a", 1, position=Decimal(1), submitted_at=1, requested_at=1),
    ]
    assert allocated(decide(pool(waiting))) == ["a", "b", "c", "d"]


def test_a_pass_said_twice_is_the_same():
    book = pool(
        [waits("a", 2), waits("b", 3)],
        running=[runs("low", "a", 2, group="low")],
        groups={"low": Group(priority=50)},
        preemption=True,
    )
    assert decide(book) == decide(book)


def test_a_gang_is_placed_whole_with_its_ranks():
    agents = [Agent(id=name, slots=4) for name in ("b", "a", "c")]
    (placement,) = decide(pool([waits("x", 12)], agents=agents)).allocate
    assert placement.shares == (Share("a", 4), Share("b", 4), Share("c", 4))


def test_a_job_at_its_max_slots_waits_and_holds_up_nobody():
    groups = {"capped": Group(priority=1, max_slots=2), "g": Group(priority=50)}
    waiting = [waits(f"c{i}", 1, group="capped") for i in range(3)] + [waits("other", 1)]
    running = [runs("c-runs", "a", 1, group="capped")]
    assert allocated(decide(pool(waiting, running=running, groups=groups))) == ["c0", "other"]


def test_a_job_at_its_max_slots_releases_nobody():
    groups = {"capped": Group(priority=1, max_slots=3), "g": Group(priority=50)}
    decision = decide(
        pool([waits("c", 4, group="capped")], running=[runs("low", "a", 4)], groups=groups, preemption=True)
    )
    assert decision.release == ()


def test_backfilling_takes_only_what_can_be_taken_back():
    groups = {"high": Group(priority=1), "g": Group(priority=50)}
    waiting = [waits("big", 8, group="high"), waits("stays", 1, preemptible=False), waits("goes", 1)]
    decision = decide(pool(waiting, groups=groups, preemption=True))
    assert [(p.allocation_id, p.backfilled) for p in decision.allocate] == [("goes", True)]


def test_only_the_preemptible_is_released_and_for_whom_is_said():
    groups = {"high": Group(priority=1), "g": Group(priority=50)}
    running = [runs("stays", "a", 2, preemptible=False), runs("goes", "a", 2)]
    decision = decide(pool([waits("x", 2, group="high")], running=running, groups=groups, preemption=True))
    assert [(r.allocation_id, r.wanted_by) for r in decision.release] == [("goes", "x")]


def test_the_least_urgent_yields_first_then_the_last_in_the_queue():
    groups = {"high": Group(priority=1), "mid": Group(priority=50), "low": Group(priority=60)}
    running = [
        runs("mid", "a", 1, group="mid"),
        runs("low-old", "a", 1, group="low", submitted_at=1),
        runs("low-new", "a", 1, group="low", submitted_at=2),
    ]
    released = []
    for wanted in (2, 3, 4):
        waiting = [waits("x", wanted, group="high")]
        decision = decide(pool(waiting, running=running, groups=groups, preemption=True))
        released.append([r.allocation_id for r in decision.release])
    assert released == [["low-new"], ["low-new", "low-old"], ["low-new", "low-old", "mid"]]


def test_one_release_serves_two_requests():
    groups = {"high": Group(priority=1), "g": Group(priority=50)}
    decision = decide(
        pool(
            [waits("x", 2, group="high"), waits("y", 2, group="high")],
            running=[runs("low", "a", 4)],
            groups=groups,
            preemption=True,
        )
    )
    assert [r.allocation_id for r in decision.release] == ["low"]


def test_without_preemption_nothing_is_released():
    groups = {"high": Group(priority=1), "g": Group(priority=50)}
    decision = decide(pool([waits("x", 4, group="high")], running=[runs("low", "a", 4)], groups=groups))
    assert decision == decide(pool([], running=[]))


def test_work_on_a_lost_agent_is_no_room():
    agents = [Agent(id="a", slots=4, draining=True)]
    groups = {"high": Group(priority=1), "g": Group(priority=50)}
    decision = decide(
        pool(
            [waits("x", 1, group="high")],
            running=[runs("low", "a", 4)],
            groups=groups,
            agents=agents,
            preemption=True,
        )
    )
    assert decision.release == ()


def test_a_mix_of_agents_is_looked_for_again_after_others_took_theirs():
    agents = [Agent(id=str(slots), slots=slots) for slots in (8, 7, 6)]
    waiting = [waits("first", 13), waits("second", 8, single_agent=True), waits("third", 13)]
    decision = decide(pool(waiting, agents=agents, allow_heterogeneous_fits=True))
    assert allocated(decision) == ["second", "third"]


@pytest.mark.parametrize("preemption", [False, True])
def test_many_equal_requests_on_a_full_cluster_are_tried_once_not_500_times(preemption, monkeypatch):
    fitted, real = [], Pool.fit
    monkeypatch.setattr(Pool, "fit", lambda pool, request: fitted.append(request) or real(pool, request))
    agents = [Agent(id=f"a{i}", slots=8) for i in range(50)]
    running = [runs(f"r{i}", f"a{i}", 8, position=Decimal(i)) for i in range(50)]
    waiting = [waits(f"w{i}", 1, position=Decimal(100 + i)) for i in range(500)]
    decision = decide(pool(waiting, running=running, agents=agents, preemption=preemption))
    assert decision.allocate == ()
    assert len(fitted) <= 2
