"""What two and four metrics processes take for the reports and log lines of many trials, against one.

python -m benchmarks.shared_ingest [--quick]

The streams are filled first, so that nobody but the services works. Wall time shows the gain where there is a
core for each process. The processor time of the busiest process says it on any machine: ingest is bounded by
it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import nats

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.live import Broker, make_streams, running_broker
from benchmarks.kit.processes import start_module
from benchmarks.kit.reports import publish_round
from benchmarks.kit.table import row
from det_contracts import subjects
from det_contracts.problems import Refused
from det_contracts.queries import LogFields, MetricNames, TrialSummaries
from det_contracts.reports import LogBatch, LogLine
from services.kit.bus import BusClient

TICKS = os.sysconf("SC_CLK_TCK")
LINES_PER_BATCH = 200
POLL_EVERY_S = 1.0


@dataclass(frozen=True)
class Size:
    trials: int = 32
    batches: int = 100
    """Of each trial."""
    steps: int = 100
    """Reports in a batch."""
    names: int = 10
    """Metrics in a report."""
    line_batches: int = 100
    """Of each trial's task."""
    shards: tuple[int, ...] = (1, 2, 4)
    rounds: int = 3

    @property
    def points(self) -> int:
        return self.trials * self.batches * self.steps * self.names

    @property
    def lines(self) -> int:
        return self.trials * self.line_batches * LINES_PER_BATCH


def task_of(trial: int) -> str:
    return f"1.{trial}"


async def fill(server: Broker, size: Size) -> None:
    """Store what all trials report and print, in turn."""
    client = await nats.connect(server.url)
    stream = client.jetstream(publish_async_max_pending=1000)
    for number in range(1, size.batches + 1):
        steps = list(range(size.steps * number, size.steps * (number + 1)))
        columns = {f"m{name}": [1.0 / (step + name) for step in steps] for name in range(size.names)}
        await publish_round(stream, range(1, size.trials + 1), number, steps, columns)
    for number in range(size.line_batches):
        texts = [
            f"step {number * LINES_PER_BATCH + n} loss={1 / (n + 1):.6f}" for n in range(LINES_PER_BATCH)
        ]
        lines = [LogLine(1e9 + number, "stdout", "INFO", 0, text) for text in texts]
        for trial in range(1, size.trials + 1):
            task = task_of(trial)
            printed = LogBatch(
                task_id=task,
                allocation_id=f"{task}.1",
                worker_id="w",
                source="task",
                offset=number,
                lines=lines,
            )
            await stream.publish_async(subjects.logs(task), msgspec.json.encode(printed))
    await stream.publish_async_completed()
    await client.close()


@contextlib.contextmanager
def services(server: Broker, folder: str, shards: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """All metrics processes, each with an empty database."""
    processes = []
    try:
        for shard in range(1, shards + 1):
            settings = {
                "STEADFAST_NATS_URL": server.url,
                "STEADFAST_DATABASE_URL": f"sqlite:///{folder}/{shard}.db",
                "STEADFAST_METRICS_SHARD": str(shard),
                "STEADFAST_METRICS_SHARDS": str(shards),
                "STEADFAST_LOG_LEVEL": "ERROR",
            }
            processes.append(start_module("services.metrics", env=os.environ | settings))
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def processor_s(process: subprocess.Popen[bytes]) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def is_stored(url: str, size: Size, trials: list[int]) -> bool:
    """Whether all that these trials reported and printed can be read."""
    client = await nats.connect(url)
    bus_client = BusClient(client)
    try:
        summaries = (await bus_client.query(TrialSummaries(trials))).value
        counts = [summary["summary"]["training"]["m0"]["count"] for summary in summaries.values()]
        printed = [(await bus_client.query(LogFields(task_of(trial)))).value["lines"] for trial in trials]
        lines = size.line_batches * LINES_PER_BATCH
        return counts == [size.batches * size.steps] * len(trials) and set(printed) == {lines}
    except Refused:
        return False
    finally:
        await client.close()


def until_stored(url: str, size: Size, trials: list[int]) -> None:
    """Return once all of it can be read."""
    while not asyncio.run(is_stored(url, size, trials)):
        time.sleep(POLL_EVERY_S)


def measure(size: Size, shards: int) -> tuple[float, list[float]]:
    """Seconds until everything is stored, and the processor time of each process for it."""
    with running_broker() as server, tempfile.TemporaryDirectory(prefix="steadfast-bench-") as folder:
        asyncio.run(make_streams(server))
        with services(server, folder, shards) as processes:
            asyncio.run(until_ready(server.url))
            for process in processes:
                process.send_signal(signal.SIGSTOP)
            asyncio.run(fill(server, size))
            before = [processor_s(process) for process in processes]
            began = time.perf_counter()
            for process in processes:
                process.send_signal(signal.SIGCONT)
            # Few questions, because they take processor time, too. The last ones were reported last.
            until_stored(server.url, size, list(range(size.trials - shards + 1, size.trials + 1)))
            took = time.perf_counter() - began
            spent = [processor_s(process) - was for process, was in zip(processes, before, strict=True)]
            until_stored(server.url, size, list(range(1, size.trials + 1)))
            return took, spent


async def until_ready(url: str) -> None:
    """Return once all processes answer."""
    client = await nats.connect(url)
    bus_client = BusClient(client)
    while True:
        with contextlib.suppress(Refused):
            await bus_client.query(MetricNames([1]))
            break
    await client.close()


def main(size: Size) -> None:
    measurements = {shards: [measure(size, shards) for _ in range(size.rounds)] for shards in size.shards}
    best: dict[int, tuple[float, float]] = {}
    for shards, rounds in measurements.items():
        took = sorted(measurement[0] for measurement in rounds)[len(rounds) // 2]
        busiest = sorted(max(measurement[1]) for measurement in rounds)[len(rounds) // 2]
        total = sorted(sum(measurement[1]) for measurement in rounds)[len(rounds) // 2]
        best[shards] = took, busiest
        baseline = best[size.shards[0]]
        name = f"{shards} process{'es' if shards > 1 else ''}"
        points = f"{size.points:,} points and {size.lines:,} lines stored"
        row(f"{name}: {points}", took, "s", "", f"{baseline[0] / took:.2f} x one process")
        more = f"{baseline[1] / busiest:.2f} x one process"
        row(f"{name}: processor time of the busiest", busiest, "s", ">= 1.5 x", more)
        each = 1e6 * total / (size.points + size.lines)
        row(f"{name}: processor time of all, per point or line", each, "us")


BENCHMARK = Benchmark(
    main,
    Size(),
    quick=Size(trials=4, batches=2, steps=5, names=2, line_batches=2, rounds=1),
)

if __name__ == "__main__":
    BENCHMARK.run()
