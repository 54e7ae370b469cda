"""The gateway loop's cost of long polls for each portion of the log that is folded.

python -m benchmarks.long_polls [--quick]
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.table import median, row
from services.catalogue.domain import State
from services.catalogue.waiters import Fact, Waiters
from services.kit.rules import Key


@dataclass(frozen=True)
class Size:
    polls: int = 10_000
    portions: int = 200


def main(size: Size) -> None:
    asyncio.run(measure(size))


async def measure(size: Size) -> None:
    polls = f"{size.polls:,} long polls"
    for what, key, aim in (
        (f"{polls}, each for a run of its own: a portion that concerns one", run_of, "< 5"),
        (f"{polls} for one experiment: a portion that concerns it", one_experiment, ""),
    ):
        waiters = Waiters(State)
        tasks = [asyncio.create_task(waiters.wait_until(Fact(never, (key(n),)))) for n in range(size.polls)]
        await asyncio.sleep(0)
        taken, longest = [], []
        for number in range(size.portions):
            whole, turn = await folded(waiters, key(number))
            taken.append(whole)
            longest.append(turn)
        row(what, median(taken), "ms", aim, f"longest turn of the loop {median(longest):.3f} ms")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def folded(waiters: Waiters, key: Key) -> tuple[float, float]:
    """Loop time for one portion, and the longest of its turns, in ms."""
    turns = [milliseconds(lambda: waiters.on_records_changed([key]))]
    while waiters.is_check_scheduled:
        began = time.perf_counter()
        await asyncio.sleep(0)
        turns.append((time.perf_counter() - began) * 1000)
    return sum(turns), max(turns)


def milliseconds(measured: Callable[[], object]) -> float:
    began = time.perf_counter()
    measured()
    return (time.perf_counter() - began) * 1000


def run_of(number: int) -> Key:
    return "allocations", f"{number}.r1.1"


def one_experiment(_: int) -> Key:
    return "experiments", 1


def never(state: State) -> bool:
    return 1 in state.experiments


BENCHMARK = Benchmark(main, Size(), quick=Size(polls=100, portions=3))

if __name__ == "__main__":
    BENCHMARK.run()
