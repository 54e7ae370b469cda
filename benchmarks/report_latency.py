"""What a report costs the training loop, with the broker up and with the broker down.

python -m benchmarks.report_latency [--quick] [REPORTS]
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.live import make_streams, running_broker
from benchmarks.kit.reporter import train_context
from benchmarks.kit.table import percentile, row
from determined.transport.bus import BusTransport

PACE_S = 0.0005
"""A step of the loop between reports: work that holds the interpreter, as training does."""


@dataclass(frozen=True)
class Size:
    reports: int = 10_000


def reports(url: str, count: int) -> tuple[list[float], BusTransport]:
    """Seconds that each of `count` reports of three floats took."""
    train, transport = train_context(url, 1)
    took = []
    clock = time.perf_counter
    for step in range(1, count + 1):
        metrics = {"loss": 1.0 / step, "accuracy": 0.5, "lr": 0.1}
        began = clock()
        train.report_training_metrics(steps_completed=step, metrics=metrics)
        took.append(clock() - began)
        until = clock() + PACE_S
        while clock() < until:
            pass
    return took, transport


def main(size: Size) -> None:
    with running_broker() as server:
        asyncio.run(make_streams(server))
        for state in ("up", "down"):
            if state == "down":
                server.stop()
            took, transport = reports(server.url, size.reports)
            row(f"report call p50, broker {state}", percentile(took, 0.5) * 1e6, "us", "< 20")
            row(f"report call p99, broker {state}", percentile(took, 0.99) * 1e6, "us", "< 200")
            if state == "up":
                began = time.perf_counter()
                transport.close()
                took_ms = (time.perf_counter() - began) * 1e3
                row(f"flush of what was left of {size.reports:,} reports", took_ms, "ms")
        # The reports of the second round wait until the broker is back.
        server.start()
        transport.close()


BENCHMARK = Benchmark(main, Size(), quick=Size(reports=100), positional=("reports",))

if __name__ == "__main__":
    BENCHMARK.run()
