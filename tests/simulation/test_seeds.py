"""A few seeds of the whole cluster; the full tier runs ten thousand, `make soak` as many as asked."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fixtures.tiers import rest_in_full
from tests.simulation.activity import too_little
from tests.simulation.simulate import simulate

BATCH = 40


@pytest.mark.parametrize("first", rest_in_full(range(0, 120, BATCH)))
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


# Between any two looks at the clock, the machine does something else for a second.
BUSY_MACHINE = """
import itertools, time
seconds = itertools.count()
for name in ("monotonic", "perf_counter", "time"):
    vars(time)[name] = lambda: float(next(seconds))
"""
DIGESTS = """
import hashlib
from tests.simulation.simulate import simulate
print([hashlib.sha256(b"".join(simulate(seed).log)).hexdigest() for seed in (0, 3)])
"""


@pytest.mark.live
def test_a_seed_replays_exactly_in_another_process():
    """Independent of that process's order of sets, and of how fast the machine is."""
    root = Path(__file__).parents[2]
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=root,
            env=os.environ | {"PYTHONHASHSEED": order},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for order, program in (("1", DIGESTS), ("2", BUSY_MACHINE + DIGESTS))
    }
    assert len(digests) == 1


def test_a_quiet_run_fails():
    quiet = simulate(1, steps=10)
    assert "too little happened" in too_little(quiet.counts, 1)
