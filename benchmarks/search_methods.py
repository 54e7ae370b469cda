"""Search methods alone: whole searches played without training, and the cost of saving one.

python -m benchmarks.search_methods [--quick] [TRIALS]
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import msgspec

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.table import median, row
from services.searcher.methods import Search, Simulation, optuna_sampler, simulate
from services.searcher.methods.optuna_sampler import Point
from services.searcher.methods.rng import Rng
from services.searcher.methods.sampling import sample
from services.searcher.methods.tpe import MAX_POINTS

SPACE = {
    "learning_rate": {"type": "log", "base": 10, "minval": -4, "maxval": -1},
    "layers": {"type": "int", "minval": 1, "maxval": 9},
}
MIB = 1024 * 1024


@dataclass(frozen=True)
class Size:
    trials: int = 100_000
    few: int = 1_000
    """Trials of the smaller search, for comparison."""
    results: tuple[int, ...] = (50, MAX_POINTS)
    runs: int = 3


def main(size: Size) -> None:
    for stop_once in (False, True):
        form = "stopping" if stop_once else "promoting"
        search = adaptive_asha(size.trials, stop_once)
        small = play(adaptive_asha(size.few, stop_once), size.runs)[0]
        rate, played = play(search, size.runs)
        ratio = f"{rate / small:.2f} of the rate with {size.few:,} trials"
        measure = f"adaptive_asha, {form}, {size.trials:,} trials played"
        row(measure, rate, "completions/s", ">= 20,000", ratio)
        save(played.search, size.runs)
    for results in size.results:
        row(f"a proposal of tpe from {results} results", propose(results, size.runs) * 1000, "ms")


def adaptive_asha(trials: int, stop_once: bool) -> dict[str, Any]:
    """The searcher section of a completed configuration."""
    return {
        "name": "adaptive_asha",
        "smaller_is_better": True,
        "max_length": {"batches": 6400},
        "max_trials": trials,
        "max_concurrent_trials": 16,
        "divisor": 4,
        "max_rungs": 5,
        "mode": "standard",
        "bracket_rungs": [],
        "stop_once": stop_once,
    }


def play(searcher: dict[str, Any], runs: int) -> tuple[float, Simulation]:
    """Completions per second, the median of a few runs; and the last run."""
    rates = []
    for _ in range(runs):
        began = time.perf_counter()
        played = simulate(searcher, SPACE, 7)
        took = time.perf_counter() - began
        rates.append(sum(map(len, played.trials.values())) / took)
    return median(rates), played


def propose(results: int, runs: int) -> float:
    """Seconds for one proposal, the median of a few."""
    rng, points, took = Rng.seeded(1), [], []
    for number in range(results):
        hparams = sample(SPACE, rng)
        points.append(Point(number, hparams, 9, hparams["learning_rate"] * hparams["layers"]))
    for seed in range(2 * runs):
        began = time.perf_counter()
        optuna_sampler.propose(SPACE, points, 9, seed)
        took.append(time.perf_counter() - began)
    return median(took)


def save(search: Search, runs: int) -> None:
    """The cost of one snapshot, written whole whenever the search has changed."""
    writing, reading, size = [], [], 0
    for _ in range(runs):
        began = time.perf_counter()
        encoded = msgspec.json.encode(search)
        writing.append(time.perf_counter() - began)
        began = time.perf_counter()
        msgspec.json.decode(encoded, type=Search)
        reading.append(time.perf_counter() - began)
        size = len(encoded)
    row("its snapshot", size / MIB, "MiB")
    row("its snapshot, encoded", median(writing) * 1000, "ms")
    row("its snapshot, decoded", median(reading) * 1000, "ms")


BENCHMARK = Benchmark(
    main,
    Size(),
    quick=Size(trials=60, few=20, results=(20, 25), runs=1),
    positional=("trials",),
    needs=("optuna",),
)

if __name__ == "__main__":
    BENCHMARK.run()
