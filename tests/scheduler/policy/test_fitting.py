"""The vectors of the scheduling spec for section 2, and the tie-breaks and limits around them."""

import json
from pathlib import Path

import pytest

from services.scheduler.policy.fitting import Pool, hash_of, score
from services.scheduler.policy.snapshot import Agent, PoolSettings, Request, Share

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "scheduling-vectors.json").read_text())


def request(slots, *, id="task1", single_agent=False):
    return Request(allocation_id=id, job_id="j", group="g", slots=slots, single_agent=single_agent)


def agents_of(*sizes):
    return [Agent(id=str(index), slots=slots) for index, slots in enumerate(sizes)]


@pytest.mark.parametrize("case", VECTORS["fit_one_agent"], ids=lambda case: case["name"])
def test_fit_one_agent(case):
    settings = PoolSettings(fitting_policy=case["fitting_policy"])
    pool = Pool([Agent(**agent) for agent in case["agents"]], settings)
    shares = pool.fit(request(case["slots"], id=case["task_id"], single_agent=case["single_agent"]))
    assert shares == (Share(case["expect_agent"], case["slots"]),)


@pytest.mark.parametrize("case", VECTORS["fit_dedicated_agents"], ids=lambda case: case["name"])
def test_fit_dedicated_agents(case):
    settings = PoolSettings(allow_heterogeneous_fits=case["allow_heterogeneous_fits"])
    pool = Pool(agents_of(*case["idle_agent_slots"]), settings)
    shares = pool.fit(request(case["slots_needed"])) or ()
    assert [share.slots for share in shares] == case["slots_per_agent"]
    if "expect_agents" in case:
        assert sorted(int(share.agent_id) for share in shares) == case["expect_agents"]


@pytest.mark.parametrize("case", VECTORS["fit_scores"]["cases"])
def test_fit_scores(case):
    agent = Agent(
        id="a",
        slots=case["agent_slots"],
        slots_used=case["slots_used"],
        max_zero_slot=case["max_zero_slot"],
        zero_slot_used=case["zero_slot_used"],
    )
    assert score(case["policy"], case["slots_needed"], agent) == pytest.approx(case["score"])


@pytest.mark.parametrize("policy", ["best", "worst"])
def test_an_agent_without_slots_scores_zero_not_an_error(policy):
    busy = Agent(id="a", slots=0, slots_used=1)
    assert 0 <= score(policy, 0, busy) <= 1


@pytest.mark.parametrize("closed", [{"enabled": False}, {"draining": True}])
@pytest.mark.parametrize("slots", [0, 1, 4])
def test_a_closed_agent_gets_nothing(closed, slots):
    pool = Pool([Agent(id="a", slots=4, **closed)], PoolSettings())
    assert pool.fit(request(slots)) is None


def test_a_gang_takes_only_agents_without_a_used_slot():
    pool = Pool([*agents_of(4, 4), Agent(id="busy", slots=4, slots_used=1)], PoolSettings())
    assert pool.fit(request(8)) == (Share("0", 4), Share("1", 4))
    assert pool.fit(request(12)) is None


def test_a_demand_for_one_agent_is_never_spread():
    assert Pool(agents_of(4, 4), PoolSettings()).fit(request(8, single_agent=True)) is None


def test_ranks_go_by_size_then_id():
    pool = Pool(agents_of(1, 2, 4, 2, 1), PoolSettings(allow_heterogeneous_fits=True))
    shares = pool.fit(request(10))
    assert shares == tuple(Share(i, n) for i, n in [("2", 4), ("1", 2), ("3", 2), ("0", 1), ("4", 1)])


def test_the_nearest_hash_wins_as_a_plain_search_says():
    agents = [Agent(id=f"agent-{index}", slots=4) for index in range(40)]
    pool = Pool(agents, PoolSettings())
    for number in range(100):
        wanted = f"7.{number}.1"
        nearest = min(agents, key=lambda a: (hash_of(wanted) - hash_of(f"/{a.id}")) % 2**64)
        assert pool.fit(request(1, id=wanted)) == (Share(nearest.id, 1),)


def test_taking_and_freeing_come_out_even():
    pool = Pool(agents_of(2, 4), PoolSettings())
    before = [pool.fit(request(slots)) for slots in range(7)]
    shares = (Share("0", 2), Share("1", 3), Share("1", 0))
    pool.take(shares)
    assert pool.fit(request(1)) == (Share("1", 1),)
    assert pool.fit(request(2)) is None
    pool.free(shares)
    assert [pool.fit(request(slots)) for slots in range(7)] == before


def test_a_copy_leaves_the_original_alone():
    pool = Pool(agents_of(4), PoolSettings())
    pool.copy().take([Share("0", 4)])
    assert pool.fit(request(4)) is not None


def test_freeing_on_a_closed_agent_opens_nothing():
    pool = Pool([Agent(id="a", slots=4, slots_used=4, draining=True)], PoolSettings())
    pool.free([Share("a", 4)])
    assert pool.fit(request(1)) is None
