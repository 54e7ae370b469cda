"""What a search method decides has a version, and searches that began with one keep to it.

    python -m tests.searcher.methods.test_versions

adds versions that are new to `versions.json`. None that is there is ever changed.
"""

import hashlib
import json
from pathlib import Path

import pytest

from services.searcher.methods import UnknownVersion, newest_version, simulate, start
from services.searcher.methods.choose import DECLARATIONS

FILE = Path(__file__).parent / "versions.json"
LENGTH = {"max_length": {"batches": 64}, "smaller_is_better": True, "metric": "loss"}
TRIALS = {"max_trials": 12, "max_concurrent_trials": 3}
SEARCHES = {
    "single": {},
    "random": TRIALS,
    "grid": {"max_concurrent_trials": 4},
    "async_halving": {**TRIALS, "num_rungs": 3, "divisor": 4, "stop_once": False},
    "adaptive_asha": {
        **TRIALS, "mode": "standard", "max_rungs": 4, "divisor": 4, "bracket_rungs": [], "stop_once": False,
    },
    "tpe": {**TRIALS, "num_startup_trials": 4},
    "pbt": {
        "population_size": 4,
        "num_rounds": 3,
        "length_per_round": {"batches": 8},
        "replace_function": {"truncate_fraction": 0.25},
        "explore_function": {"resample_probability": 0.2, "perturb_factor": 0.2},
    },
}  # fmt: skip
SPACE = {
    "lr": {"type": "log", "base": 10, "minval": -4, "maxval": -1, "count": 3},
    "units": {"type": "int", "minval": 8, "maxval": 64, "count": 3},
    "kind": {"type": "categorical", "vals": ["a", "b"]},
}


def metric(number, length, rng):
    return (number * 7919 % 97) / (length + 1)


def played(name, version):
    """What a version of a method asked for over a whole search, in short."""
    states = []
    config = {"name": name, **LENGTH, **SEARCHES[name]}
    simulation = simulate(
        config, SPACE, 5, metric=metric, version=version, on_step=lambda search: states.append(search.rng)
    )
    decisions = [
        list(simulation.trials.items()),
        repr(simulation.shutdown),
        [repr(state) for state in states],
    ]
    return hashlib.sha256(json.dumps(decisions).encode()).hexdigest()[:16]


def every_version():
    return [(name, version) for name in SEARCHES for version in range(1, DECLARATIONS[name].version + 1)]


def test_each_method_is_played():
    assert {*SEARCHES, "custom"} == set(DECLARATIONS), "add a row to SEARCHES above"
    recorded = json.loads(FILE.read_text())
    assert all(f"{name} {version}" in recorded for name, version in every_version()), (
        "python -m tests.searcher.methods.test_versions"
    )


@pytest.mark.parametrize(("name", "version"), every_version())
def test_a_version_decides_as_it_did_when_it_was_new(name, version):
    digests = json.loads(FILE.read_text())
    assert played(name, version) == digests[f"{name} {version}"], (
        f"searches that began with version {version} of {name} would be folded otherwise: leave it as it "
        "is, and add the change as a version of its own (CONTRIBUTING.md)"
    )


def test_a_version_of_a_later_release_is_refused_in_words():
    config = {"name": "grid", **LENGTH, **SEARCHES["grid"]}
    with pytest.raises(
        UnknownVersion, match="version 2 of the method 'grid', and this release has version 1"
    ):
        start(config, SPACE, 5, newest_version(config) + 1)


if __name__ == "__main__":
    digests = json.loads(FILE.read_text()) if FILE.exists() else {}
    new = {f"{name} {version}": played(name, version) for name, version in every_version()}
    FILE.write_text(json.dumps(new | digests, indent=2) + "\n")
