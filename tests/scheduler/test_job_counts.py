"""The jobs of each pool, counted as requests come and go, are those that its queue lists."""

import pytest

from det_contracts.events import gateway
from det_contracts.queries import Jobs, Pools
from services.scheduler.queries import jobs, pools
from tests.scheduler.test_index import Chance, begin_with_two_pools


def counted(state):
    """What `Pools` answers: jobs that only wait, and jobs that hold slots."""
    return {row["name"]: (row["queued"], row["scheduled"]) for row in pools(state, Pools())}


def listed(state):
    """The same, from the whole queue."""
    state.index.gate.update_books()
    states = [(row["pool"], row["state"] == "QUEUED") for row in jobs(state, Jobs())]
    return {name: (states.count((name, True)), states.count((name, False))) for name in state.pools}


class ChanceWithQuotas(Chance):
    """Users have quotas now and then, so that some requests are kept out of the books."""

    def step(self):
        if self.random.random() < 0.15:
            slots = self.random.choice([None, 1, 2, 4])
            self.cluster.decisions_after(gateway.QuotaSet(holder="user-3", slots=slots, reason="test"))
        super().step()


@pytest.mark.parametrize("kind", ["priority", "fair_share"])
@pytest.mark.parametrize("seed", range(4))
def test_the_counts_are_those_of_the_whole_queue(cluster, kind, seed):
    cluster.decisions_after(gateway.UserSet(user_id=3, username="ann", reason="test"))
    begin_with_two_pools(cluster, kind, preemption=seed % 2 == 0)
    chance = ChanceWithQuotas(cluster, seed)
    counts_so_far, kept_out = set(), 0
    for _ in range(200):
        chance.step()
        state = cluster.state
        # Before the books are brought up to date, and after it.
        counts = counted(state)
        assert counts == listed(state) == counted(state)
        counts_so_far.update(counts.values())
        kept_out += sum(1 for pool in state.pools for _ in state.index.gate.not_admitted(pool))
    assert len(counts_so_far) > 5
    assert kept_out
