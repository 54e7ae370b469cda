"""How long `det` takes: its help, and a list of many experiments, next to an interpreter that does nothing.

python -m benchmarks.cli [--quick] [EXPERIMENTS]
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import nats

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.cluster import address, broker_url, running_cluster
from benchmarks.kit.histories import config
from benchmarks.kit.table import median, row
from det_contracts.commands import CreateExperiment
from services.kit.bus import BusClient

DET = (sys.executable, "-m", "determined.cli")
AT_ONCE = 32


@dataclass(frozen=True)
class Size:
    experiments: int = 10_000
    times: int = 9


def seconds(times: int, command: tuple[str, ...], **environment: str) -> float:
    """Median wall time of a process whose output is discarded."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(command, env=os.environ | environment, stdout=subprocess.DEVNULL, check=True)
        took.append(time.perf_counter() - began)
    return median(took)


async def submit(url: str, credentials: str, count: int) -> None:
    """Create experiments that stay paused, without code."""
    client = await nats.connect(url, user_credentials=credentials)
    bus_client, left = BusClient(client), iter(range(count))

    async def some() -> None:
        for number in left:
            experiment_config = config(max_trials=1) | {"name": f"listed {number}"}
            command = CreateExperiment(
                user="determined", config=experiment_config, original_config="", activate=False
            )
            await bus_client.command(command)

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    await client.close()


def main(size: Size) -> None:
    nothing = seconds(size.times, (sys.executable, "-c", "pass"))
    row("python -c pass", nothing * 1e3, "ms")
    shown = seconds(size.times, (*DET, "--help"))
    row("det --help", shown * 1e3, "ms", "< 250", f"{shown / nothing:.1f} x python -c pass")
    with running_cluster(slots=1) as home, tempfile.TemporaryDirectory() as configuration:
        asyncio.run(submit(*broker_url(home), size.experiments))
        environment = {"DET_MASTER": address(home), "DET_DEBUG_CONFIG_PATH": configuration}
        subprocess.run(
            (*DET, "e", "list"), env=os.environ | environment, stdout=subprocess.DEVNULL, check=True
        )
        listed = seconds(size.times, (*DET, "e", "list"), **environment)
        ratio = f"{listed / nothing:.1f} x python -c pass"
        row(f"det e list, {size.experiments:,} experiments", listed * 1e3, "ms", "< 1,000", ratio)


BENCHMARK = Benchmark(main, Size(), quick=Size(experiments=5, times=1), positional=("experiments",))

if __name__ == "__main__":
    BENCHMARK.run()
