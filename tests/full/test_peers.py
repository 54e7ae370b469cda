"""Every peer of `benchmarks/peers` can be installed with its pinned versions, and answers."""

import math

import pytest

from benchmarks import beside_peers
from benchmarks.beside_peers import OURS, Size

GROUPS = {
    "trials": beside_peers.TRIALS,
    "reports": beside_peers.REPORTS,
    "stored": beside_peers.STORED,
    "curves": beside_peers.CURVES,
}
PEERS = [
    pytest.param(contender, id=f"{group}: {contender.title}")
    for group, contenders in GROUPS.items()
    for contender in contenders
    if not contender.title.startswith(OURS)
]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("contender", PEERS)
def test_a_peer_answers(contender):
    answer, most = contender.run(50, Size(install=True))
    assert answer.keys() in ({"per_second"}, {"p50", "p99"}, {"first", "p50"})
    assert all(math.isfinite(value) and value > 0 for value in answer.values())
    assert most > 1_000_000
