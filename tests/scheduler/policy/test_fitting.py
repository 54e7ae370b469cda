"""The vectors of the scheduling spec for section 2, and the tie-breaks and limits around them."""

import json
from pathlib import Path

import pytest

from services.scheduler.policy.fitting import Pool, Shape, hash_of, score
from services.scheduler.policy.records import PoolSettings, Request, Share

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "scheduling-vectors.json").read_text())


def request(slots, *, id="task1", single_agent=False):
    return Request(allocation_id=id, job_id="j", group="g", slots=slots, single_agent=single_agent)


def idle(slots):
    return Shape(slots, 0, 100, 0)


def pool_of(*sizes, **settings):
    pool = Pool(PoolSettings(**settings))
    for index, slots in enumerate(sizes):
        pool.put(str(index), idle(slots))
    return pool


@pytest.mark.parametrize("case", VECTORS["fit_one_agent"], ids=lambda case: case["name"])
def test_fit_one_agent(case):
    pool = Pool(PoolSettings(fitting_policy=case["fitting_policy"]))
    for a in case["agents"]:
        shape = a["slots"], a.get("slots_used", 0), a.get("max_zero_slot", 100), a.get("zero_slot_used", 0)
        pool.put(a["id"], Shape(*shape))
    shares = pool.fit(request(case["slots"], id=case["task_id"], single_agent=case["single_agent"]))
    assert shares == (Share(case["expect_agent"], case["slots"]),)


@pytest.mark.parametrize("case", VECTORS["fit_dedicated_agents"], ids=lambda case: case["name"])
def test_fit_dedicated_agents(case):
    pool = pool_of(*case["idle_agent_slots"], allow_heterogeneous_fits=case["allow_heterogeneous_fits"])
    shares = pool.fit(request(case["slots_needed"])) or ()
    assert [share.slots for share in shares] == case["slots_per_agent"]
    assert pool.fits(request(case["slots_needed"])) == bool(shares)
    if "expect_agents" in case:
        assert sorted(int(share.agent_id) for share in shares) == case["expect_agents"]


@pytest.mark.parametrize("case", VECTORS["fit_scores"]["cases"])
def test_fit_scores(case):
    shape = Shape(case["agent_slots"], case["slots_used"], case["max_zero_slot"], case["zero_slot_used"])
    assert score(case["policy"], case["slots_needed"], shape) == pytest.approx(case["score"])


@pytest.mark.parametrize("policy", ["best", "worst"])
def test_an_agent_without_slots_scores_zero_not_an_error(policy):
    assert 0 <= score(policy, 0, Shape(0, 1, 100, 0)) <= 1


def test_a_gang_takes_only_agents_without_a_used_slot():
    pool = pool_of(4, 4)
    pool.put("busy", Shape(4, 1, 100, 0))
    assert pool.fit(request(8)) == (Share("0", 4), Share("1", 4))
    assert pool.fit(request(12)) is None


def test_a_demand_for_one_agent_is_never_spread():
    assert pool_of(4, 4).fit(request(8, single_agent=True)) is None


def test_ranks_go_by_size_then_id():
    shares = pool_of(1, 2, 4, 2, 1, allow_heterogeneous_fits=True).fit(request(10))
    assert shares == tuple(Share(i, n) for i, n in [("2", 4), ("1", 2), ("3", 2), ("0", 1), ("4", 1)])


def test_the_nearest_hash_wins_as_a_plain_search_says():
    pool, names = Pool(PoolSettings()), [f"agent-{index}" for index in range(40)]
    for name in names:
        pool.put(name, idle(4))
    for number in range(100):
        wanted = f"7.{number}.1"
        nearest = sorted(names, key=lambda name: (hash_of(wanted) - hash_of(f"/{name}")) % 2**64)
        assert pool.fit(request(1, id=wanted)) == (Share(nearest[0], 1),)
        gang = tuple(Share(name, 4) for name in sorted(nearest[:7]))
        assert pool.fit(request(28, id=wanted)) == gang


def test_taking_and_freeing_come_out_even():
    pool = pool_of(2, 4)
    before = [pool.fit(request(slots)) for slots in range(7)]
    shares = (Share("0", 2), Share("1", 3), Share("1", 0))
    pool.take(shares)
    assert pool.fit(request(1)) == (Share("1", 1),)
    assert pool.fit(request(2)) is None
    pool.free(shares)
    assert [pool.fit(request(slots)) for slots in range(7)] == before


def test_a_copy_leaves_the_original_alone():
    pool = pool_of(4)
    pool.copy().take([Share("0", 4)])
    assert pool.fit(request(4)) is not None


def test_freeing_on_an_agent_that_is_not_there_opens_nothing():
    pool = pool_of(4)
    pool.drop("0")
    pool.free([Share("0", 4)])
    assert pool.fit(request(1)) is None
