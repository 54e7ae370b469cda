"""What a report costs the training loop, with the broker up and with the broker down.

python -m benchmarks.report_latency [REPORTS]
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

from benchmarks.live import connected, running_broker
from benchmarks.reporter import train_context
from benchmarks.table import head, percentile, row
from determined.transport.bus import BusTransport

PACE_S = 0.0005
"""A step of the loop between reports: work that holds the interpreter, as training does."""


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


async def make_streams(server) -> None:
    async with connected(server):
        pass


def main(count: int) -> None:
    head()
    with running_broker() as server:
        asyncio.run(make_streams(server))
        for state in ("up", "down"):
            if state == "down":
                server.stop()
            took, transport = reports(server.url, count)
            row(f"report call p50, broker {state}", percentile(took, 0.5) * 1e6, "us", "< 20")
            row(f"report call p99, broker {state}", percentile(took, 0.99) * 1e6, "us", "< 200")
            if state == "up":
                began = time.perf_counter()
                transport.close()
                row(f"flush of what was left of {count:,} reports", (time.perf_counter() - began) * 1e3, "ms")
    # The reports of the second round have nowhere to go.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
