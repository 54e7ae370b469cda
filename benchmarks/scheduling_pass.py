"""One pass over a large queue: 1,000 agents of 8 slots, 10,000 requests wait and 5,000 run, 300 groups.

python -m benchmarks.scheduling_pass [--quick]
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.table import median, row
from services.scheduler.policy.book import Book
from services.scheduler.policy.decide import decide
from services.scheduler.policy.records import NOTHING, Agent, Decision, Group, PoolSettings, Request

SLOTS = 8
SIZES = {1: 80, 2: 12, 4: 4, 8: 3, 16: 1}
"""Slots that requests need, and how many of 100 requests need them."""
CASES = {
    "priority": PoolSettings(type="priority"),
    "priority with preemption": PoolSettings(type="priority", preemption=True),
    "fair_share": PoolSettings(type="fair_share"),
    "round_robin": PoolSettings(type="round_robin"),
}


@dataclass(frozen=True)
class Size:
    agents: int = 1000
    groups: int = 300
    requests: int = 15_000
    passes: int = 20
    comings: int = 200


class Cluster:
    """An idle pool with all requests waiting, and a supply of further ones."""

    def __init__(self, settings: PoolSettings, size: Size) -> None:
        self.random, self.numbers = random.Random(1), itertools.count()
        self.groups = size.groups
        self.book = Book(settings)
        for number in range(size.agents):
            self.book.put_agent(Agent(id=f"agent-{number}", slots=SLOTS))
        for number in range(size.groups):
            limit = self.random.choice((None, None, None, 100))
            priority = self.random.choice((10, 42, 42, 42, 60, 90))
            self.book.put_group(str(number), Group(priority=priority, max_slots=limit, registered=number))
        for _ in range(size.requests):
            self.book.wait(self.request())

    def request(self) -> Request:
        number, group = next(self.numbers), self.random.randrange(self.groups)
        return Request(
            allocation_id=f"{group}.{number}.1",
            job_id=str(group),
            group=str(group),
            slots=self.random.choices(list(SIZES), list(SIZES.values()))[0],
            position=Decimal(group),
            submitted_at=float(group),
            requested_at=float(number),
        )

    def rest(self) -> None:
        """Carry out decisions until there are none; preempted runs leave and queue again."""
        while (decision := decide(self.book)) != NOTHING:
            self.carry_out(decision)

    def carry_out(self, decision: Decision) -> None:
        for placement in decision.allocate:
            self.book.run(self.book.waiting[placement.allocation_id], placement.shares)
        for release in decision.release:
            self.book.wait(self.book.running[release.allocation_id].request)


def milliseconds(measured: Callable[[], object]) -> float:
    began = time.perf_counter()
    measured()
    return (time.perf_counter() - began) * 1000


def full(cluster: Cluster) -> float:
    """A pass without any cached results, and with nothing to do."""
    cluster.book.idle_pass.invalidate()
    return milliseconds(lambda: decide(cluster.book))


def one_more(cluster: Cluster) -> float:
    """A request comes, and there is no place for it."""
    request = cluster.request()

    def event() -> None:
        cluster.book.wait(request)
        decide(cluster.book)

    took = milliseconds(event)
    cluster.rest()
    return took


def one_ends(cluster: Cluster) -> float:
    """A run ends, and the pass assigns its slots."""
    ended = cluster.random.choice(list(cluster.book.running))

    def event() -> None:
        cluster.book.leave(ended)
        decide(cluster.book)

    took = milliseconds(event)
    cluster.rest()
    return took


def main(size: Size) -> None:
    for name, settings in CASES.items():
        cluster = Cluster(settings, size)
        first = milliseconds(partial(decide, cluster.book))
        pool = f"an idle pool of {size.agents * SLOTS:,} slots"
        row(f"{name}: {size.requests:,} requests and {pool}", first, "ms")
        cluster.rest()
        count = f"{len(cluster.book.running):,} run, {len(cluster.book.waiting):,} wait"
        whole = [full(cluster) for _ in range(size.passes)]
        row(f"{name}: a whole pass, {count}", median(whole), "ms", "< 50")
        ended = [one_ends(cluster) for _ in range(size.passes)]
        row(f"{name}: a run ends, and a pass", median(ended), "ms", "< 50")
        come = [one_more(cluster) for _ in range(size.comings)]
        row(f"{name}: one more waits, and a pass", median(come), "ms", "< 1")


BENCHMARK = Benchmark(main, Size(), quick=Size(agents=6, groups=4, requests=90, passes=2, comings=2))

if __name__ == "__main__":
    BENCHMARK.run()
