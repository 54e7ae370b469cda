"""What every program of a peer does: measure what it is asked for, and leave the answer in a file.

Programs run in the environments of their peers: they may import the standard library, their peer, and this.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

Answer = dict[str, float]
Measure = Callable[[int], Answer]
PACE_S = 0.0005
"""A step of the loop between reports: work that holds the interpreter, as training does."""
NAMES = tuple(f"m{number}" for number in range(10))
"""Metrics of one report, where it is counted how many points are stored."""


def answer(measures: dict[str, Measure]) -> None:
    """Run the measure that the command line names, `MEASURE COUNT FILE`, and write what it found there."""
    name, count, file = sys.argv[1:4]
    measurement = measures[name](int(count))
    Path(file).write_text(json.dumps(measurement))


def each_call(report: Callable[[int], object], count: int) -> Answer:
    """Microseconds of each of `count` calls, p50 and p99, with work between them."""
    took = []
    clock = time.perf_counter
    for step in range(1, count + 1):
        began = clock()
        report(step)
        took.append(1e6 * (clock() - began))
        until = clock() + PACE_S
        while clock() < until:
            pass
    took.sort()
    return {"p50": took[len(took) // 2], "p99": took[min(len(took) - 1, int(0.99 * len(took)))]}


def three(step: int) -> dict[str, float]:
    """The values of one report whose cost is measured."""
    return {"loss": 1.0 / step, "accuracy": 0.5, "lr": 0.1}


def rate(count: int, work: Callable[[], object]) -> Answer:
    """How many of `count` a second this makes."""
    began = time.perf_counter()
    work()
    return {"per_second": count / (time.perf_counter() - began)}


def milliseconds(work: Callable[[], object], times: int = 5) -> Answer:
    """The first time, and the median of those after it."""
    took = []
    for _ in range(times + 1):
        began = time.perf_counter()
        work()
        took.append(1e3 * (time.perf_counter() - began))
    return {"first": took[0], "p50": sorted(took[1:])[times // 2]}
