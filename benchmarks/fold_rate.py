"""How fast the searcher and the scheduler fold the log: decode and evolve, per event.

python benchmarks/fold_rate.py [EVENTS]
"""

from __future__ import annotations

import sys
import time

from benchmarks.histories import Cluster, bodies
from benchmarks.table import head, row
from det_contracts import codec
from services.scheduler.app import RULES as SCHEDULER
from services.searcher.app import RULES as SEARCHER


def main(wanted: int) -> None:
    cluster = Cluster()
    began = time.perf_counter()
    while len(cluster.log) < min(wanted, 60_000):
        cluster.run(200)
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


def fold(rules, encoded) -> float:
    """Events per second through decode and evolve."""
    state = rules.state()
    began = time.perf_counter()
    for position, body in enumerate(encoded, 1):
        for _ in rules.evolve(state, codec.decode(body, position)):
            pass
    return len(encoded) / (time.perf_counter() - began)


if __name__ == "__main__":
    head()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60_000)
