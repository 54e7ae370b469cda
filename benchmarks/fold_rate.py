"""How fast the searcher and the scheduler fold the log: decode and evolve, per event.

python -m benchmarks.fold_rate [--quick] [EVENTS]
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.histories import Cluster, bodies
from benchmarks.kit.table import row
from det_contracts import codec
from services.kit.rules import Rules
from services.scheduler.app import RULES as SCHEDULER
from services.searcher.app import RULES as SEARCHER


@dataclass(frozen=True)
class Size:
    events: int = 60_000
    trials: int = 200
    """Trials of each search that makes the events."""


def main(size: Size) -> None:
    cluster = Cluster()
    began = time.perf_counter()
    while len(cluster.log) < size.events:
        cluster.run(size.trials)
    made = len(cluster.log) / (time.perf_counter() - began)
    encoded = bodies(cluster.log)
    began = time.perf_counter()
    for position, body in enumerate(encoded, 1):
        codec.decode(body, position)
    decoding = len(encoded) / (time.perf_counter() - began)
    row("decide and fold in both services, one thread", made, "events/s")
    row("decode alone", decoding, "events/s")
    for name, rules in (("searcher", SEARCHER), ("scheduler", SCHEDULER)):
        rate = fold(rules, encoded)
        row(f"fold rate, {name}", rate, "events/s", ">= 20,000", f"{rate / decoding:.2f} of decoding alone")
        row(f"1,000,000 events rebuilt, {name} (from that rate)", 1_000_000 / rate, "s", "< 60")


def fold(rules: Rules[Any], encoded: list[bytes]) -> float:
    """Events per second through decode and evolve."""
    state = rules.state()
    began = time.perf_counter()
    for position, body in enumerate(encoded, 1):
        for _ in rules.evolve(state, codec.decode(body, position)):
            pass
    return len(encoded) / (time.perf_counter() - began)


BENCHMARK = Benchmark(main, Size(), quick=Size(events=300, trials=4), positional=("events",))

if __name__ == "__main__":
    BENCHMARK.run()
