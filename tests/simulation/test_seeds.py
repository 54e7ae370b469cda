"""A few hundred seeds of the whole cluster; `make soak` runs as many as asked."""

from collections import Counter

import pytest

from tests.simulation.activity import too_little
from tests.simulation.simulate import simulate

BATCH = 40


@pytest.mark.parametrize("first", range(0, 240, BATCH))
def test_nothing_goes_wrong(first):
    counts = Counter()
    for seed in range(first, first + BATCH):
        result = simulate(seed)
        assert result.violation is None, result.story
        assert result.steps >= 300, seed
        counts.update(result.counts)
    assert not too_little(counts, BATCH)


@pytest.mark.parametrize("seed", [3, 17])
def test_a_seed_replays_exactly(seed):
    assert simulate(seed).log == simulate(seed).log


def test_a_quiet_run_fails():
    quiet = simulate(1, steps=10)
    assert "too little happened" in too_little(quiet.counts, 1)
